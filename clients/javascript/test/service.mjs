// The tests use a running service: POSTRIDER_URL, and POSTRIDER_API_KEY with a full-access key of a workspace that has
// registered demo.example. tests/clients in the repository starts one.
import { setTimeout as sleep } from "node:timers/promises";
import { Postrider } from "postrider";

export const FROM = "Demo <hello@demo.example>";

export const postrider = new Postrider();

/** Return an address that no other test uses. */
export function someone() {
  return `ada-${crypto.randomUUID()}@example.com`;
}

export function newEmail(fields = {}) {
  return { from: FROM, to: someone(), subject: "Hello", html: "<p>Hi</p>", ...fields };
}

export function inAnHour() {
  return new Date(Date.now() + 3_600_000);
}

export async function until(condition, what, seconds = 20) {
  for (const end = Date.now() + seconds * 1_000; Date.now() < end; await sleep(50)) {
    const found = await condition();
    if (found) return found;
  }
  throw new Error(`not within ${seconds} s: ${what}`);
}
