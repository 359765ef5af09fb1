import assert from "node:assert/strict";
import http from "node:http";
import { createRequire } from "node:module";
import { test } from "node:test";

const require = createRequire(import.meta.url);
const zapier = require("zapier-platform-core");
const App = require("../index.js");

const appTester = zapier.createAppTester(App);
const authData = { base_url: `${process.env.POSTRIDER_URL}/`, api_key: process.env.POSTRIDER_API_KEY };
const SENDER = { from_name: "Hopper, Grace", from_user: "hello", from_domain: "demo.example" };

function someone() {
  return `ada-${crypto.randomUUID()}@example.com`;
}

function run(perform, inputData = {}, fields = {}) {
  return appTester(perform, { authData, inputData, ...fields });
}

async function api(path, init = {}) {
  const headers = { Authorization: `Bearer ${authData.api_key}`, "Content-Type": "application/json" };
  const response = await fetch(`${process.env.POSTRIDER_URL}/v1${path}`, { headers, ...init });
  return { status: response.status, ...(await response.json()) };
}

function template() {
  const body = { name: `T ${crypto.randomUUID()}`, subject: "Hi {{name}}", htmlContent: "<p>{{name}}</p>" };
  return api("/templates", { method: "POST", body: JSON.stringify(body) });
}

/** Run a server during the callback; return the result of the callback. */
async function serving(handler, callback) {
  const server = http.createServer(handler);
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    return await callback(`http://127.0.0.1:${server.address().port}`);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("the app is valid according to Zapier's schema", () => {
  const { prepareApp, validateApp } = require("zapier-platform-core/src/tools/schema");
  assert.deepEqual(validateApp(prepareApp(App)), []);
});

test("the connection is tested with GET /v1/me and gets its label from it", async () => {
  const me = await run(App.authentication.test);
  assert.match(me.workspace.id, /^ws_/);
  assert.equal(await run(App.authentication.connectionLabel, me), `${me.workspace.name} (${me.key.name})`);
  const wrong = appTester(App.authentication.test, { authData: { ...authData, api_key: "pr_x" } });
  await assert.rejects(wrong, /AuthenticationError/);
});

test("an email is sent with attachments, and the API key is not sent to their hosts", async () => {
  const seen = [];
  const serve = (request, response) => {
    seen.push(request.headers.authorization);
    response.writeHead(200, { "Content-Type": "text/plain", "Content-Disposition": 'attachment; filename="a.txt"' }).end("hello");
  };
  const to = [someone(), `Ada L <${someone()}>`];
  await serving(serve, async (url) => {
    const input = { ...SENDER, to, subject: "Hello", html: "<p>Hi</p>", text: "", tags: ["zapier"], metadata: { order: "7" }, attachments: [`${url}/x/a%20b.txt`] };
    const { id } = await run(App.creates.send_email.operation.perform, input);
    const email = await api(`/emails/${id}`);
    assert.deepEqual([email.to, email.from, email.tags, email.metadata], [to.join(", "), '"Hopper, Grace" <hello@demo.example>', ["zapier"], { order: "7" }]);
    assert.deepEqual(email.attachments, [{ filename: "a.txt", contentType: "text/plain", size: 5 }]);
  });
  assert.deepEqual(seen, [undefined]);
});

test("an email has a time limit", async () => {
  const input = { ...SENDER, to: [someone()], subject: "Your code", text: "482913", deliver_within: 600 };
  const { id } = await run(App.creates.send_email.operation.perform, input);
  const { createdAt, expiresAt } = await api(`/emails/${id}`);
  assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), 600_000);
});

test("a sensitive email is accepted without content that can be read", async () => {
  const input = { ...SENDER, to: [someone()], subject: "Your code", text: "482913", sensitive: true };
  const { id } = await run(App.creates.send_email.operation.perform, input);
  const { sensitive, contentNotKept, text } = await api(`/emails/${id}`);
  assert.deepEqual([sensitive, contentNotKept, text], [true, true, ""]);
});

test("an invitation is sent to the addresses of the envelope, and an email without To is not", async () => {
  const serve = (_, response) => {
    const head = { "Content-Type": "text/calendar", "Content-Disposition": 'attachment; filename="meeting.ics"' };
    response.writeHead(200, head).end("BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n");
  };
  const [shown, to] = [someone(), someone()];
  await serving(serve, async (url) => {
    const files = { attachments: [`${url}/a`], alternatives: [`${url}/b`] };
    const input = { ...SENDER, to: [to], cc: [shown], envelope: [to], subject: "Meeting", text: "Meet", ...files };
    const { id } = await run(App.creates.send_email.operation.perform, input);
    const email = await api(`/emails/${id}`);
    assert.deepEqual([email.cc, email.recipients.map((one) => one.email)], [[shown], [to]]);
    assert.deepEqual(email.attachments.map((one) => one.contentType), ["text/calendar", "text/calendar; method=REQUEST"]);
  });
  const hidden = { ...SENDER, to: [], bcc: [shown], subject: "Hello", text: "Hi" };
  await assert.rejects(run(App.creates.send_email.operation.perform, hidden), /to: /);
});

test("an idempotency key sends a replayed Zap's email once", async () => {
  const input = { ...SENDER, to: [someone()], subject: "Hello", text: "Hi", idempotency_key: crypto.randomUUID() };
  const first = await run(App.creates.send_email.operation.perform, input);
  assert.deepEqual(await run(App.creates.send_email.operation.perform, input), first);
});

test("templates and domains fill the drop-downs", async () => {
  const { id, name } = await template();
  const meta = { meta: { page: 0 } };
  const templates = await run(App.triggers.template.operation.perform, {}, meta);
  assert.ok(templates.some((one) => one.id === id && one.name === name));
  const domains = await run(App.triggers.domain.operation.perform, {}, meta);
  assert.ok(domains.some((domain) => domain.name === "demo.example"));
  assert.deepEqual(await run(App.triggers.template.operation.perform, {}, { meta: { page: 999 } }), []);
});

test("a template is sent to one and to many", async () => {
  const { id: template_id } = await template();
  const input = { ...SENDER, template_id, template_data: { name: "Ada" } };
  const { id } = await run(App.creates.send_template.operation.perform, { ...input, to: [someone()] });
  assert.equal((await api(`/emails/${id}`)).subject, "Hi Ada");
  const batch = await run(App.creates.send_batch.operation.perform, { ...input, recipients: [someone(), someone()], subject: "Dear all" });
  assert.equal(batch.queued, 2);
  assert.equal((await api(`/emails/${batch.ids[1]}`)).subject, "Dear all");
});

test("an email is retrieved, found and cancelled", async () => {
  const tag = `zapier-${crypto.randomUUID()}`;
  const input = { ...SENDER, to: [someone()], subject: "Later", text: "Hi", tags: [tag], scheduled_for: new Date(Date.now() + 3_600_000).toISOString() };
  const { id, status } = await run(App.creates.send_email.operation.perform, input);
  assert.equal(status, "scheduled");
  const [email] = await run(App.searches.email.operation.perform, { id });
  assert.equal(email.subject, "Later");
  const found = await run(App.searches.emails.operation.perform, { tag, status: "scheduled" });
  assert.deepEqual(found.map((one) => one.id), [id]);
  assert.deepEqual(await run(App.creates.cancel_email.operation.perform, { id }), { id, status: "cancelled" });
  await assert.rejects(run(App.creates.cancel_email.operation.perform, { id: " " }), /ID is empty/);
});

test("an address is suppressed, found and unsuppressed", async () => {
  const email = someone();
  const { id } = await run(App.creates.block_address.operation.perform, { email });
  const [found] = await run(App.searches.suppression.operation.perform, { email: email.toUpperCase() });
  assert.equal(found.id, id);
  assert.equal((await run(App.creates.unblock_address.operation.perform, { id })).deleted, true);
  assert.deepEqual(await run(App.searches.suppression.operation.perform, { email }), []);
});

test("an email is sent in a stream, and only this stream is suppressed", async () => {
  const stream = `s-${crypto.randomUUID().slice(0, 8)}`;
  await api("/streams", { method: "POST", body: JSON.stringify({ id: stream, name: "News", kind: "bulk" }) });
  const choices = await run(App.triggers.stream.operation.perform, {}, { meta: { page: 0 } });
  assert.deepEqual(choices[0], { id: "main", name: "Main", kind: "transactional" });
  assert.ok(choices.some(({ id }) => id === stream));
  const email = someone();
  const input = { ...SENDER, to: [email], subject: "Hello", text: "Hi", stream };
  const { id } = await run(App.creates.send_email.operation.perform, input);
  assert.equal((await api(`/emails/${id}`)).stream, stream);
  assert.deepEqual((await run(App.searches.emails.operation.perform, { stream })).map((one) => one.id), [id]);
  assert.equal((await run(App.creates.block_address.operation.perform, { email, stream })).stream, stream);
  await assert.rejects(run(App.creates.send_email.operation.perform, input), /suppress/);
  assert.ok((await run(App.creates.send_email.operation.perform, { ...input, stream: "" })).id);
  const trigger = App.triggers.event.operation;
  const subscribed = { events: ["clicked"], streams: [stream] };
  const subscribeData = await run(trigger.performSubscribe, subscribed, { targetUrl: "http://127.0.0.1:9/hook" });
  assert.deepEqual((await api(`/webhooks/${subscribeData.id}`)).streams, [stream]);
  await run(trigger.performUnsubscribe, subscribed, { subscribeData });
});

test("an error response is reported with its fields, and a rate limit as ThrottledError", async () => {
  const input = { ...SENDER, to: ["nobody"], subject: "Hello", text: "Hi" };
  await assert.rejects(run(App.creates.send_email.operation.perform, input), /to\[0\]: .*/);
  const limit = (_, response) => {
    const body = JSON.stringify({ status: 429, code: "rate_limit_exceeded", detail: "Slower." });
    response.writeHead(429, { "Content-Type": "application/problem+json", "Retry-After": "7" }).end(body);
  };
  await serving(limit, async (base_url) => {
    const call = appTester(App.authentication.test, { authData: { ...authData, base_url } });
    await assert.rejects(call, (error) => error.name === "ThrottledError" && /"delay":7/.test(error.message));
  });
});

test("the trigger creates a webhook, accepts signed requests, ignores others, and deletes it", async () => {
  const { performSubscribe, perform, performList, performUnsubscribe } = App.triggers.event.operation;
  const input = { events: ["delivered"] };
  const received = [];
  const catchAll = async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, content: Buffer.concat(chunks).toString() });
    response.end();
  };
  await serving(catchAll, async (targetUrl) => {
    const subscribeData = await run(performSubscribe, input, { targetUrl });
    const { id } = await run(App.creates.send_email.operation.perform, { ...SENDER, to: [someone()], subject: "Hi", text: "Hi" });
    const isForEmail = ({ content }) => JSON.parse(content).data.emailId === id;
    for (const end = Date.now() + 30_000; !received.some(isForEmail); await new Promise((resolve) => setTimeout(resolve, 50))) {
      assert.ok(Date.now() < end, "no delivery within 30 s");
    }
    const rawRequest = received.find(isForEmail);
    const cleanedRequest = JSON.parse(rawRequest.content);
    const asZapier = Object.fromEntries(Object.entries(rawRequest.headers).map(([name, value]) => [`Http-${name}`, value]));
    const receive = (raw, data = subscribeData) => run(perform, input, { rawRequest: raw, cleanedRequest, subscribeData: data });
    assert.equal((await receive(rawRequest))[0].data.emailId, id);
    assert.equal((await receive({ ...rawRequest, headers: asZapier })).length, 1);
    assert.deepEqual(await receive({ ...rawRequest, content: `${rawRequest.content} ` }), []);
    assert.deepEqual(await receive({ ...rawRequest, headers: {} }), []);
    assert.deepEqual(await receive(rawRequest, { id: subscribeData.id }), []);
    const samples = await run(performList, input);
    const sample = samples.find((one) => one.data.emailId === id);
    assert.deepEqual([sample.id, sample.type], [cleanedRequest.id, "email.delivered"]);
    await run(performUnsubscribe, input, { subscribeData });
    assert.equal((await api(`/webhooks/${subscribeData.id}`)).status, 404);
  });
});

test("a received email triggers a Zap unless the Zap ignores it", async () => {
  const { performSubscribe, perform, performList, performUnsubscribe } = App.triggers.received.operation;
  const received = [];
  const catchAll = async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, content: Buffer.concat(chunks).toString() });
    response.end();
  };
  await serving(catchAll, async (targetUrl) => {
    const subscribeData = await run(performSubscribe, {}, { targetUrl });
    assert.deepEqual((await api(`/webhooks/${subscribeData.id}`)).events, ["received"]);
    const { address } = await api("/inbound");
    const raw = "From: Ada <ada@example.com>\r\nSubject: Order 7\r\n\r\nWhere is it?\r\n";
    const headers = { Authorization: `Bearer ${process.env.TEST_API_KEY}`, "Content-Type": "application/json" };
    const message = { recipient: address, envelopeFrom: "ada@example.com", raw };
    const { id } = await api("/inbound/emails", { method: "POST", headers, body: JSON.stringify(message) });
    assert.match(id, /^inb_/);
    const isForEmail = ({ content }) => JSON.parse(content).data.id === id;
    for (const end = Date.now() + 30_000; !received.some(isForEmail); await new Promise((resolve) => setTimeout(resolve, 50))) {
      assert.ok(Date.now() < end, "no delivery within 30 s");
    }
    const rawRequest = received.find(isForEmail);
    const cleanedRequest = JSON.parse(rawRequest.content);
    const receive = (input, request = rawRequest) => run(perform, input, { rawRequest: request, cleanedRequest, subscribeData });
    const [email] = await receive({});
    assert.deepEqual([email.id, email.subject, email.text.trim(), email.from.email], [id, "Order 7", "Where is it?", "ada@example.com"]);
    assert.equal((await receive({ recipient: address.toUpperCase() })).length, 1);
    for (const input of [{ recipient: "sales@" }, { only_proven: true }, { only_answers: true }]) assert.deepEqual(await receive(input), []);
    assert.deepEqual(await receive({}, { ...rawRequest, headers: {} }), []);
    const sample = (await run(performList, {})).find((one) => one.id === id);
    assert.equal(sample.text, email.text);
    await run(performUnsubscribe, {}, { subscribeData });
  });
});
