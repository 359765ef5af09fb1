import assert from "node:assert/strict";
import { test } from "node:test";
import { inspect } from "node:util";
import { AuthenticationError, Postrider, PostriderError, QuotaExceededError } from "postrider";
import { newEmail, postrider, someone } from "./service.mjs";

test("a wrong key is AuthenticationError", async () => {
  const unauthenticated = new Postrider("pr_not_a_key");
  await assert.rejects(unauthenticated.me(), (error) => {
    assert.ok(error instanceof AuthenticationError);
    return error.code === "invalid_api_key" && error.status === 401;
  });
});

test("an exceeded quota is reported with its reset time, and not retried", { skip: !process.env.SPENT_API_KEY }, async () => {
  let requests = 0;
  const counted = (input, init) => {
    requests += 1;
    return fetch(input, init);
  };
  const exhausted = new Postrider(process.env.SPENT_API_KEY, { maxRetries: 5, fetch: counted });
  await assert.rejects(exhausted.emails.send(newEmail({ from: "hello@exhausted.example" })), (error) => {
    assert.ok(error instanceof QuotaExceededError);
    assert.deepEqual([error.limit, error.used, error.requested], [500, 500, 1]);
    assert.ok(error.resetsAt > new Date());
    return true;
  });
  assert.equal(requests, 1, "it was retried");
});

test("the API key is not exposed by inspect or JSON", () => {
  const output = inspect(postrider, { depth: 9, showHidden: true }) + JSON.stringify(postrider);
  assert.ok(!output.includes(process.env.POSTRIDER_API_KEY));
});

test("a client without a key or with an invalid base URL is rejected", () => {
  const saved = { ...process.env };
  delete process.env.POSTRIDER_API_KEY;
  delete process.env.POSTRIDER_URL;
  try {
    assert.throws(() => new Postrider(undefined, { baseUrl: "http://127.0.0.1" }), /apiKey.*POSTRIDER_API_KEY/);
    assert.throws(() => new Postrider("pr_x"), /baseUrl.*POSTRIDER_URL/);
    assert.throws(() => new Postrider("pr_x"), PostriderError);
    assert.throws(() => new Postrider("pr_x", { baseUrl: "mail.example.com" }), /https/);
  } finally {
    Object.assign(process.env, saved);
  }
});

test("an invalid API key is rejected, and not repeated in the error", async () => {
  for (const key of ["pr_secret\nkey", "pr_secret…key", "pr_secret key"]) {
    assert.throws(
      () => new Postrider(key, { baseUrl: "http://127.0.0.1" }),
      (error) => error instanceof PostriderError && !error.message.includes("secret"),
    );
  }
  const client = new Postrider(` ${process.env.POSTRIDER_API_KEY}\n`, { baseUrl: process.env.POSTRIDER_URL });
  assert.ok((await client.me()).workspace.id);
});

test("the base URL may end in a slash or in /v1", async () => {
  for (const end of ["/", "/v1", "/v1/"]) {
    const client = new Postrider(undefined, { baseUrl: process.env.POSTRIDER_URL + end });
    assert.ok((await client.me()).workspace.id);
  }
});

test("an aborted call ends with the caller's reason", async () => {
  const controller = new AbortController();
  const call = postrider.emails.send(newEmail({ to: someone() }), { signal: controller.signal });
  controller.abort(new Error("changed my mind"));
  await assert.rejects(call, /changed my mind/);
  await assert.rejects(postrider.me({ signal: AbortSignal.abort(new Error("too late")) }), /too late/);
});
