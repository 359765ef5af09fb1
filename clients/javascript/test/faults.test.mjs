// A proxy in front of the running service that injects network errors.
import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { ConnectionError, Postrider, RateLimitError, ServerError, TimeoutError } from "postrider";
import { newEmail, postrider } from "./service.mjs";

const LOSE = (_reply, response) => response.socket.destroy();
const HANG = () => {};
const PASS = (reply, response) => response.writeHead(reply.status, Object.fromEntries(reply.headers)).end(reply.body);
const answer = (status, headers = {}, body = "") => Object.assign((_, response) => response.writeHead(status, headers).end(body), { isLocal: true });
const problem = (status, code, headers) =>
  answer(status, { "Content-Type": "application/problem+json", ...headers }, JSON.stringify({ status, code, detail: "No." }));

/** Run with a client whose requests get these faults in order, then pass. Every fault except `answer` reaches the service first. */
async function through(faults, act, options = {}) {
  const seen = [];
  const urls = [];
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const { host, connection, "content-length": _length, ...headers } = request.headers;
    seen.push(request.headers);
    urls.push(request.url);
    const fault = faults.shift() ?? PASS;
    if (fault.isLocal) return fault(null, response);
    const body = chunks.length ? { body: Buffer.concat(chunks) } : {};
    const reply = await fetch(process.env.POSTRIDER_URL + request.url, { method: request.method, headers, ...body });
    const replyHeaders = new Headers({ "content-type": reply.headers.get("content-type") });
    fault({ status: reply.status, headers: replyHeaders, body: Buffer.from(await reply.arrayBuffer()) }, response);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const client = new Postrider(undefined, { baseUrl: `http://127.0.0.1:${server.address().port}`, ...options });
  try {
    return { result: await act(client).catch((error) => error), seen, urls };
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function countOf(tag) {
  return (await postrider.emails.list({ tag })).total;
}

test("a list continues with older emails where its pages end", async () => {
  const page = (ids, members) => answer(200, { "Content-Type": "application/json" },
    JSON.stringify({ data: ids.map((id) => ({ id })), page: 1, limit: 2, ...members }));
  const answers = [
    page(["a", "b"], { total: 10_001, totalIsExact: false }),
    page(["c"], { total: 3, page: 2, totalIsExact: false, continueTo: "2026-03-15T12:00:00.000Z" }),
    // An email of the same millisecond is in both lists; a list without matches continues, too.
    page(["c", "d"], { total: 2, totalIsExact: false, continueTo: "2026-03-14T12:00:00.000Z" }),
    page([], { total: 0, totalIsExact: false, continueTo: "2026-03-13T12:00:00.000Z" }),
    page(["e"], { total: 1 }),
  ];
  const { result, urls } = await through(answers, async (client) => {
    const ids = [];
    for await (const email of client.emails.list({ tag: "t", limit: 2 })) ids.push(email.id);
    return ids;
  });
  assert.deepEqual(result, ["a", "b", "c", "d", "e"]);
  const positions = urls.map((url) => new URL(url, "http://localhost").searchParams).map((query) => [query.get("page"), query.get("to")]);
  const continued = ["15", "14", "13"].map((day) => ["1", `2026-03-${day}T12:00:00.000Z`]);
  assert.deepEqual(positions.slice(1), [["2", null], ...continued]);
});

test("an email whose response is lost is sent once", async () => {
  const tag = `lost-${crypto.randomUUID()}`;
  const { result, seen } = await through([LOSE, problem(503, "service_unavailable")], (client) => client.emails.send(newEmail({ tags: [tag] })));
  assert.equal((await postrider.emails.get(result.id)).tags[0], tag);
  assert.equal(await countOf(tag), 1);
  assert.equal(new Set(seen.map((headers) => headers["idempotency-key"])).size, 1);
  assert.equal(seen.length, 3);
});

test("a batch and a resend whose responses are lost happen once", async () => {
  const tag = `lost-${crypto.randomUUID()}`;
  const template = await postrider.templates.create({ name: "Hi", subject: "Hi", htmlContent: "<p>Hi</p>" });
  const batch = { from: "hello@demo.example", templateId: template.id, recipients: [{ to: "a@example.com" }, { to: "b@example.com" }], tags: [tag] };
  const { result } = await through([LOSE], (client) => client.emails.batch(batch));
  assert.equal(await countOf(tag), 2);
  await through([LOSE], (client) => client.emails.resend(result.ids[0]));
  assert.equal(await countOf(tag), 3);
});

test("a rate limit is retried after Retry-After", async () => {
  const started = Date.now();
  const { result } = await through([problem(429, "rate_limit_exceeded", { "Retry-After": "1" })], (client) => client.me());
  assert.ok(result.workspace);
  assert.ok(Date.now() - started >= 1_000);
});

test("a Retry-After of an hour is not waited for", async () => {
  const { result, seen } = await through([problem(429, "rate_limit_exceeded", { "Retry-After": "3600" })], (client) => client.me());
  assert.ok(result instanceof RateLimitError);
  assert.equal(result.retryAfter, 3_600);
  assert.equal(seen.length, 1);
});

test("a limit of a proxy is retried after Retry-After, for requests that must not be repeated too", async () => {
  const html = { "Content-Type": "text/html", "Retry-After": "1" };
  const template = { name: "Hi", subject: "Hi", htmlContent: "<p>Hi</p>" };
  const { result, seen } = await through([answer(429, html, "<h1>Slow down</h1>")], (client) => client.templates.create(template));
  assert.ok(result.id);
  assert.equal(seen.length, 2);
  const late = await through([answer(429, { ...html, "Retry-After": "7200" })], (client) => client.me());
  assert.equal(late.result.status, 429);
  assert.equal(late.seen.length, 1);
});

test("an exceeded quota is not retried", async () => {
  const { seen } = await through([problem(429, "quota_exceeded")], (client) => client.emails.send(newEmail()));
  assert.equal(seen.length, 1);
});

test("a request in progress elsewhere is retried", async () => {
  const { result } = await through([problem(409, "idempotency_in_progress", { "Retry-After": "1" })], (client) => client.emails.send(newEmail()));
  assert.equal(result.status, "queued");
});

test("a request that is not idempotent is not retried after a lost response", async () => {
  const { result, seen } = await through([LOSE], (client) => client.templates.create({ name: "Once", subject: "Hi", htmlContent: "<p>Hi</p>" }));
  assert.ok(result instanceof ConnectionError);
  assert.equal(seen.length, 1);
});

test("an attempt that takes too long is TimeoutError", async () => {
  const { result, seen } = await through([HANG, HANG], (client) => client.me(), { timeoutMs: 150, maxRetries: 1 });
  assert.ok(result instanceof TimeoutError);
  assert.equal(seen.length, 2);
});

test("an error response of a proxy is an error with its status", async () => {
  const html = answer(502, { "Content-Type": "text/html" }, "<h1>Bad gateway</h1>");
  const { result } = await through([html], (client) => client.me(), { maxRetries: 0 });
  assert.ok(result instanceof ServerError);
  assert.deepEqual([result.status, result.code], [502, "unknown"]);
});

test("a redirect is reported, and the key is not forwarded", async () => {
  const { result, seen } = await through([answer(301, { Location: "https://elsewhere.example/v1/me" })], (client) => client.me());
  assert.match(result.message, /elsewhere\.example.*baseUrl/);
  assert.equal(seen.length, 1);
});

test("an unreachable server is ConnectionError, with the reason", async () => {
  const client = new Postrider(undefined, { baseUrl: "http://127.0.0.1:1", maxRetries: 0 });
  await assert.rejects(client.me(), (error) => error instanceof ConnectionError && /bad port|ECONNREFUSED/.test(error.message));
});
