import assert from "node:assert/strict";
import http from "node:http";
import { after, before, test } from "node:test";
import { receivedTrigger, trigger } from "./harness/n8n.mjs";

const deliveries = [];
let server;
let webhookBaseUrl;

/** Provide requests as n8n's server does: with the parsed and the raw body. */
before(async () => {
  server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    request.rawBody = Buffer.concat(chunks);
    request.body = JSON.parse(request.rawBody);
    deliveries.push(request);
    response.writeHead(200).end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  webhookBaseUrl = `http://127.0.0.1:${server.address().port}`;
});

after(() => {
  server.closeAllConnections();
  server.close();
});

async function api(method, path, body, key = process.env.POSTRIDER_API_KEY) {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  const response = await fetch(`${process.env.POSTRIDER_URL}/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  return { status: response.status, body: await response.json() };
}

async function deliveryFor(emailId, member = "emailId") {
  for (const end = Date.now() + 30_000; Date.now() < end; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const found = deliveries.find((request) => request.body.data[member] === emailId);
    if (found) return found;
  }
  throw new Error("no delivery within 30 s");
}

function newResponse() {
  const response = { status: (code) => Object.assign(response, { code }), json: (body) => Object.assign(response, { body }) };
  return response;
}

test("the trigger creates its webhook, accepts signed requests, rejects others, and deletes the webhook", async () => {
  const node = trigger(["delivered"], { webhookBaseUrl });
  assert.equal(await node.checkExists(), false);
  await node.create();
  const { webhookId, secret } = node.staticData();
  const webhook = (await api("GET", `/webhooks/${webhookId}`)).body;
  assert.deepEqual([webhook.events, webhook.active, webhook.url.startsWith(webhookBaseUrl)], [["delivered"], true, true]);
  assert.equal(await node.checkExists(), true);

  const message = { from: "hello@demo.example", to: `n8n-${crypto.randomUUID()}@example.com`, subject: "Hi", html: "<p>Hi</p>" };
  const { id } = (await api("POST", "/emails/send", message)).body;
  const request = await deliveryFor(id);
  const { workflowData } = await node.receive(request, newResponse());
  assert.equal(workflowData[0][0].json.event, "delivered");
  assert.equal(workflowData[0][0].json.data.to, message.to);

  const old = { ...request.headers, "webhook-timestamp": String(request.headers["webhook-timestamp"] - 3_600) };
  const forgeries = [
    { rawBody: Buffer.concat([request.rawBody, Buffer.from(" ")]), headers: request.headers },
    { rawBody: request.rawBody, headers: old },
    { rawBody: request.rawBody, headers: { ...request.headers, "webhook-signature": "v1,AAAA" } },
    { rawBody: request.rawBody, headers: { "x-service-signature": request.headers["x-service-signature"] } },
    { rawBody: undefined, headers: request.headers },
  ];
  for (const forged of forgeries) {
    const response = newResponse();
    assert.deepEqual(await node.receive({ body: request.body, ...forged }, response), { noWebhookResponse: true });
    assert.equal(response.code, 401);
  }

  await node.delete();
  assert.equal((await api("GET", `/webhooks/${webhookId}`)).status, 404);
  assert.deepEqual({ ...node.staticData() }, {});
  assert.ok(secret.startsWith("whsec_"));
  await node.delete();
});

test("a webhook that was deleted or has other events is created again", async () => {
  const node = trigger(["bounced"], { webhookBaseUrl });
  await node.create();
  const { webhookId, secret } = node.staticData();
  const other = trigger(["bounced", "failed"], { webhookBaseUrl, staticData: { "node:Postrider": { webhookId, secret } } });
  assert.equal(await other.checkExists(), false);
  assert.equal((await api("GET", `/webhooks/${webhookId}`)).status, 404);
  assert.equal(await node.checkExists(), false);
});

test("a webhook is limited to streams, and created again for others", async () => {
  const id = `s-${crypto.randomUUID().slice(0, 8)}`;
  await api("POST", "/streams", { id, name: "News" });
  const node = trigger(["bounced"], { webhookBaseUrl, streams: `${id}, main` });
  await node.create();
  const { webhookId, secret } = node.staticData();
  assert.deepEqual((await api("GET", `/webhooks/${webhookId}`)).body.streams.sort(), [id, "main"].sort());
  assert.equal(await node.checkExists(), true);
  const other = trigger(["bounced"], { webhookBaseUrl, streams: id, staticData: { "node:Postrider": { webhookId, secret } } });
  assert.equal(await other.checkExists(), false);
});

test("a received email starts the workflow unless the node ignores it", async () => {
  const node = receivedTrigger({}, { webhookBaseUrl });
  await node.create();
  const { webhookId, secret } = node.staticData();
  assert.deepEqual((await api("GET", `/webhooks/${webhookId}`)).body.events, ["received"]);
  assert.equal(await node.checkExists(), true);
  const { address } = (await api("GET", "/inbound")).body;
  const receive = async (raw) => {
    const message = { recipient: address, envelopeFrom: "ada@example.com", raw };
    const { status, body } = await api("POST", "/inbound/emails", message, process.env.TEST_API_KEY);
    assert.equal(status, 202);
    return deliveryFor(body.id, "id");
  };
  const with_ = (parameters) => receivedTrigger(parameters, { webhookBaseUrl, staticData: { "node:Postrider": { webhookId, secret } } });

  const request = await receive("From: Ada <ada@example.com>\r\nSubject: Order 7\r\n\r\nWhere is it?\r\n");
  const email = (await node.receive(request, newResponse())).workflowData[0][0].json;
  assert.deepEqual([email.subject, email.from.email, email.text.trim()], ["Order 7", "ada@example.com", "Where is it?"]);
  assert.equal((await with_({ recipient: address.toUpperCase() }).receive(request, newResponse())).workflowData.length, 1);
  for (const parameters of [{ recipient: "sales@" }, { onlyProven: true }, { onlyAnswers: true }]) {
    assert.deepEqual(await with_(parameters).receive(request, newResponse()), {});
  }
  const response = newResponse();
  assert.deepEqual(await node.receive({ ...request, headers: {} }, response), { noWebhookResponse: true });
  assert.equal(response.code, 401);

  const notice = await receive("From: ada@example.com\r\nAuto-Submitted: auto-replied\r\nSubject: Away\r\n\r\nBack on Monday\r\n");
  assert.deepEqual(await node.receive(notice, newResponse()), {});
  assert.equal((await with_({ ignoreAutomatic: false }).receive(notice, newResponse())).workflowData.length, 1);
  await node.delete();
});
