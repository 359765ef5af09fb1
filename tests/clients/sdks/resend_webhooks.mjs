// Webhooks of Resend's Node library, verified by it and by Svix. Environment: see resend_client.mjs.
import assert from "node:assert/strict";
import { Webhook } from "svix";
import { received, startReceiver } from "./receiver.mjs";
import { eventually, ok, resend, run, simple } from "./resend_client.mjs";

const receiver = await startReceiver();
const events = ["email.sent", "email.delivered", "email.scheduled", "contact.created"];
const webhook = await ok(resend.webhooks.create({ endpoint: receiver.url, events }));
const read = await ok(resend.webhooks.get(webhook.id));
assert.deepEqual([read.endpoint, read.status, read.events], [receiver.url, "enabled", ["email.sent", "email.delivered"]]);
assert.ok((await ok(resend.webhooks.list())).data.some((one) => one.id === webhook.id));

const sent = await ok(resend.emails.send(simple(`hook-${run}@example.com`, { tags: [{ name: "run", value: run }] })));
const { headers, body } = await received(receiver, ({ type, data }) => type === "email.delivered" && data.email_id === sent.id);
const options = {
  payload: body,
  headers: { id: headers["svix-id"], timestamp: headers["svix-timestamp"], signature: headers["svix-signature"] },
  webhookSecret: webhook.signing_secret,
};
const event = resend.webhooks.verify(options);
assert.deepEqual([event.type, event.data.to, event.data.tags], ["email.delivered", [`hook-${run}@example.com`], { run }]);
assert.deepEqual(new Webhook(webhook.signing_secret).verify(body, headers), event);
for (const verify of [(payload) => resend.webhooks.verify({ ...options, payload }), (payload) => new Webhook(webhook.signing_secret).verify(payload, headers)])
  assert.throws(() => verify(`${body} `), /signature/i);

const chosen = { webhookId: webhook.id, eventId: headers["svix-id"] };
const isDone = (one) => one.status === "success";
const log = await eventually(() => resend.webhooks.events.get(chosen), isDone);
assert.deepEqual([log.type, log.payload], ["email.delivered", event]);
const { data } = await ok(resend.webhooks.events.list({ webhookId: webhook.id }));
assert.deepEqual(data.map((one) => one.type).sort(), ["email.delivered", "email.sent"]);
assert.equal((await ok(resend.webhooks.events.replay(chosen))).id, log.id);
const attempts = await eventually(() => resend.webhooks.events.attempts.list(chosen), (list) => list.data.length === 2);
assert.deepEqual([attempts.data[0].http_status_code, attempts.data[0].response], [200, "ok"]);

const rotated = await ok(resend.webhooks.rotateSigningSecret(webhook.id));
assert.notEqual(rotated.signing_secret, webhook.signing_secret);
await ok(resend.webhooks.update(webhook.id, { status: "disabled", events: ["email.bounced"] }));
assert.equal((await ok(resend.webhooks.get(webhook.id))).status, "disabled");
assert.equal((await ok(resend.webhooks.remove(webhook.id))).deleted, true);
receiver.stop();
