import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { credentialOf, execute, loader, loadOptions, testCredential } from "./harness/n8n.mjs";

const FROM = "Demo <hello@demo.example>";

function someone() {
  return `ada-${crypto.randomUUID()}@example.com`;
}

function send(fields = {}, options = {}) {
  return { resource: "email", operation: "send", from: FROM, to: someone(), subject: "Hello", html: "<p>Hi</p>", text: "", options, ...fields };
}

async function api(path, init = {}) {
  const headers = { Authorization: `Bearer ${process.env.POSTRIDER_API_KEY}`, "Content-Type": "application/json" };
  return await (await fetch(`${process.env.POSTRIDER_URL}/v1${path}`, { headers, ...init })).json();
}

async function templateOf(fields = {}) {
  const body = { name: `T ${crypto.randomUUID()}`, subject: "Hi {{name}}", htmlContent: "<p>{{name}}</p>", ...fields };
  return await api("/templates", { method: "POST", body: JSON.stringify(body) });
}

function checkIcons({ light, dark }) {
  assert.match(light, /postrider\.svg$/);
  assert.match(dark, /postrider\.dark\.svg$/);
}

test("n8n loads both nodes and the credential, with their icons", () => {
  assert.deepEqual(Object.keys(loader.nodeTypes), ["postrider", "postriderTrigger", "postriderReceivedTrigger"]);
  for (const { type } of Object.values(loader.nodeTypes)) checkIcons(type.description.iconUrl);
  checkIcons(loader.credentialTypes.postriderApi.type.iconUrl);
  assert.deepEqual(loader.known.credentials.postriderApi.supportedNodes, ["postrider", "postriderTrigger", "postriderReceivedTrigger"]);
});

test("the credential is tested with GET /v1/me", async () => {
  assert.equal(await testCredential(credentialOf()), 200);
  assert.equal(await testCredential(credentialOf({ baseUrl: `${process.env.POSTRIDER_URL}/` })), 200);
  assert.equal(await testCredential(credentialOf({ apiKey: "pr_not_a_key" })), 401);
});

test("an email is sent for each item, with expressions, files and options", async () => {
  const data = Buffer.from([...Array(256).keys()]);
  const binary = { data: { data: data.toString("base64"), mimeType: "application/octet-stream", fileName: "a.bin" } };
  const options = { attachments: "data", tags: "one, two", metadata: '{"order": 7}', cc: someone(), headers: '{"X-A": "1"}', trackOpens: false };
  const parameters = send({ subject: "=Hi {{ $json.name }}", to: `"Hopper, Grace" <${someone()}>, ${someone()}` }, options);
  const items = [{ json: { name: "Ada" }, binary }, { json: { name: "Bob" }, binary }];
  const sent = await execute(parameters, { items });
  assert.deepEqual(sent.map(({ json, pairedItem }) => [json.status, pairedItem.item]), [["queued", 0], ["queued", 1]]);
  const email = await api(`/emails/${sent[1].json.id}`);
  assert.equal(email.subject, "Hi Bob");
  assert.equal(email.to, parameters.to);
  assert.deepEqual([email.tags, email.metadata, email.cc, email.headers], [["one", "two"], { order: 7 }, [options.cc], { "X-A": "1" }]);
  assert.deepEqual(email.attachments, [{ filename: "a.bin", contentType: "application/octet-stream", size: 256 }]);
});

test("an invitation is sent to the addresses of the envelope, and an email without To is not", async () => {
  const calendar = Buffer.from("BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n").toString("base64");
  const file = { data: calendar, mimeType: "text/calendar", fileName: "meeting.ics" };
  const [shown, to] = [someone(), someone()];
  const options = { cc: shown, envelope: to, attachments: "file", alternatives: "invitation" };
  const [sent] = await execute(send({ to }, options), { items: [{ json: {}, binary: { file, invitation: file } }] });
  const email = await api(`/emails/${sent.json.id}`);
  assert.deepEqual([email.cc, email.recipients.map((one) => one.email)], [[shown], [to]]);
  assert.deepEqual(email.attachments.map((one) => one.contentType), ["text/calendar", "text/calendar; method=REQUEST"]);
  await assert.rejects(execute(send({ to: "={{ $json.missing }}" }, { bcc: shown })), ({ description }) => /^to: /m.test(description));
});

test("an item retried in its execution is sent once, and other items are not affected", async () => {
  const parameters = send();
  const items = [{ json: {} }, { json: {} }];
  const first = await execute(parameters, { items, executionId: "71" });
  const again = await execute(parameters, { items, executionId: "71" });
  const later = await execute(parameters, { items, executionId: "72" });
  const ids = [first, again, later].map((sent) => sent.map(({ json }) => json.id));
  assert.deepEqual(ids[0], ids[1]);
  assert.equal(new Set(ids.flat()).size, 4);
});

test("a template is chosen from a list and filled in", async () => {
  const template = await templateOf();
  const choices = await loadOptions("getTemplates");
  assert.deepEqual(choices.find(({ value }) => value === template.id), { name: template.name, value: template.id, description: "Hi {{name}}" });
  const parameters = { resource: "email", operation: "sendTemplate", from: FROM, to: someone(), templateId: template.id, templateData: '={{ JSON.stringify({name: $json.name}) }}', options: {} };
  const [sent] = await execute(parameters, { items: [{ json: { name: "Ada" } }] });
  assert.equal((await api(`/emails/${sent.json.id}`)).subject, "Hi Ada");
});

test("a batch sends to the recipients of all items and returns a result for each", async () => {
  const template = await templateOf();
  const people = [someone(), someone(), someone()];
  await api("/suppressions", { method: "POST", body: JSON.stringify({ email: people[1] }) });
  const parameters = { resource: "email", operation: "sendBatch", from: FROM, to: "={{ $json.to }}", templateId: template.id, templateData: "={{ $json }}", options: { tags: "batch" } };
  const items = people.map((to) => ({ json: { to, name: to.slice(0, 9) } }));
  const results = await execute(parameters, { items });
  assert.deepEqual(results.map(({ json }) => [json.to, json.accepted]), people.map((to, index) => [to, index !== 1]));
  assert.equal(results[1].json.code, "recipient_suppressed");
  assert.equal((await api(`/emails/${results[2].json.id}`)).subject, `Hi ${people[2].slice(0, 9)}`);
});

test("a batch of more than 500 is sent in parts", async () => {
  const template = await templateOf();
  const parameters = { resource: "email", operation: "sendBatch", from: FROM, to: "={{ $json.to }}", templateId: template.id, templateData: "{}", options: {} };
  const items = Array.from({ length: 501 }, (_, index) => ({ json: { to: `delivered+${index}@simulator.example` } }));
  const results = await execute(parameters, { items });
  assert.equal(new Set(results.map(({ json }) => json.id)).size, 501);
});

test("an email is read, found and cancelled; its time is in the workflow's time zone", async () => {
  const tag = `n8n-${crypto.randomUUID()}`;
  const tomorrow = new Date(Date.now() + 86_400_000).toISOString().slice(0, 11);
  const parameters = send({}, { scheduledFor: `${tomorrow}12:00:00`, tags: tag });
  const [sent] = await execute(parameters, { settings: { timezone: "Asia/Kolkata" } });
  const emailId = sent.json.id;
  const [email] = await execute({ resource: "email", operation: "get", emailId });
  assert.equal(email.json.scheduledFor, `${tomorrow}06:30:00.000Z`);
  const many = { resource: "email", operation: "getAll", returnAll: true, filters: { tag, status: ["scheduled", "queued"] } };
  assert.deepEqual((await execute(many)).map(({ json }) => json.id), [emailId]);
  const [cancelled] = await execute({ resource: "email", operation: "cancel", emailId });
  assert.deepEqual(cancelled.json, { id: emailId, status: "cancelled" });
});

test("many emails are read up to the limit, over pages", async () => {
  const many = { resource: "email", operation: "getAll", returnAll: false, limit: 150, filters: {} };
  const emails = await execute(many);
  assert.equal(new Set(emails.map(({ json }) => json.id)).size, 150);
});

test("addresses are suppressed, found and unsuppressed", async () => {
  const email = someone();
  const [created] = await execute({ resource: "suppression", operation: "create", email });
  const found = await execute({ resource: "suppression", operation: "getAll", returnAll: true, filters: { search: email } });
  assert.deepEqual(found.map(({ json }) => json), [created.json]);
  const [deleted] = await execute({ resource: "suppression", operation: "delete", suppressionId: created.json.id });
  assert.equal(deleted.json.deleted, true);
});

test("an email and a batch have a time limit", async () => {
  const [sent] = await execute(send({ to: someone() }, { deliverWithin: 600 }));
  const template = await templateOf();
  const batch = { resource: "email", operation: "sendBatch", from: FROM, to: someone(), templateId: template.id, templateData: "{}", options: { deliverWithin: 600 } };
  const [result] = await execute(batch);
  for (const { json } of [sent, result]) {
    const { createdAt, expiresAt } = await api(`/emails/${json.id}`);
    assert.equal(Date.parse(expiresAt) - Date.parse(createdAt), 600_000);
  }
});

test("a sensitive email and batch are accepted without content that can be read", async () => {
  const [sent] = await execute(send({ to: someone() }, { sensitive: true }));
  const template = await templateOf();
  const batch = { resource: "email", operation: "sendBatch", from: FROM, to: someone(), templateId: template.id, templateData: "{}", options: { sensitive: true } };
  const [result] = await execute(batch);
  for (const { json } of [sent, result]) {
    const { sensitive, contentNotKept } = await api(`/emails/${json.id}`);
    assert.deepEqual([sensitive, contentNotKept], [true, true]);
  }
});

test("an email is sent in a stream, and only this stream is suppressed", async () => {
  const id = `s-${crypto.randomUUID().slice(0, 8)}`;
  await api("/streams", { method: "POST", body: JSON.stringify({ id, name: "News", kind: "bulk" }) });
  const to = someone();
  const [sent] = await execute(send({ to }, { stream: id }));
  assert.equal((await api(`/emails/${sent.json.id}`)).stream, id);
  const many = { resource: "email", operation: "getAll", returnAll: true, filters: { stream: id } };
  assert.deepEqual((await execute(many)).map(({ json }) => json.id), [sent.json.id]);
  const [created] = await execute({ resource: "suppression", operation: "create", email: to, stream: id });
  assert.equal(created.json.stream, id);
  const found = await execute({ resource: "suppression", operation: "getAll", returnAll: true, filters: { stream: id } });
  assert.deepEqual(found.map(({ json }) => json), [created.json]);
  await assert.rejects(execute(send({ to }, { stream: id })), ({ message }) => /recipient_suppressed/.test(message));
  assert.equal((await execute(send({ to })))[0].json.status, "queued");
  const template = await templateOf();
  const batch = { resource: "email", operation: "sendBatch", from: FROM, to: someone(), templateId: template.id, templateData: "{}", options: { stream: id } };
  const [result] = await execute(batch);
  assert.equal((await api(`/emails/${result.json.id}`)).stream, id);
});

test("an error response fails the node with its code and fields", async () => {
  await assert.rejects(execute(send({ from: "nobody", to: "nobody" })), (error) => {
    assert.match(error.message, /validation_error/);
    assert.match(error.description, /from: .*\nto\[0\]: /);
    assert.equal(error.httpCode, "422");
    return true;
  });
  await assert.rejects(execute(send(), { credential: credentialOf({ apiKey: "pr_x" }) }), ({ message }) => /invalid_api_key/.test(message));
  await assert.rejects(execute({ resource: "email", operation: "cancel", emailId: " " }), ({ message }) => /ID is empty/.test(message));
});

test("a node that continues on failure returns the error of the failed item", async () => {
  const items = [{ json: { from: "hello@not-registered.example" } }, { json: { from: FROM } }];
  const results = await execute(send({ from: "={{ $json.from }}" }), { items, onError: "continueRegularOutput" });
  assert.match(results[0].json.error, /domain_not_registered/);
  assert.equal(results[1].json.status, "queued");
});

test("the node of the example sends its email", async () => {
  const { nodes } = JSON.parse(readFileSync(new URL("../examples/thank-you.json", import.meta.url), "utf8"));
  const { parameters } = nodes.find(({ type }) => type === "n8n-nodes-postrider.postrider");
  const [sent] = await execute(parameters, { items: [{ json: { name: "Ada", email: someone() } }] });
  assert.equal((await api(`/emails/${sent.json.id}`)).subject, "Thank you, Ada");
});
