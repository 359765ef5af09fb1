// Resend's Node library with the base URL and key of the service. Environment: URL, KEY, RUN (unique).
import assert from "node:assert/strict";
import { Resend } from "resend";

const { URL: base, KEY: key, RUN: run } = process.env;
const baseUrl = `${base}/compat/resend`;
export const resend = new Resend(key, { baseUrl });
export const stranger = new Resend("re_123", { baseUrl });
export { run };
export const from = "Demo <hello@demo.example>";
export const simple = (to, extra = {}) => ({ from, to, subject: "Hello", text: "It works", ...extra });

export async function ok(call) {
  const { data, error } = await call;
  assert.equal(error, null, JSON.stringify(error));
  return data;
}

export async function fails(call, statusCode, name) {
  const { data, error } = await call;
  assert.equal(data, null);
  assert.deepEqual([error.statusCode, error.name], [statusCode, name], error.message);
  return error;
}

// Repeats a call until the condition holds for its data, for up to a minute.
export async function eventually(call, condition) {
  for (let left = 240; left; left--) {
    const data = await ok(call());
    if (condition(data)) return data;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error("The condition did not hold within a minute.");
}
