// An endpoint with the format of SendGrid, verified by SendGrid's library. Environment: URL, KEY, RUN.
import assert from "node:assert/strict";
import eventWebhook from "@sendgrid/eventwebhook";
import { received, startReceiver } from "./receiver.mjs";

const { URL: base, KEY: key, RUN: run } = process.env;

async function post(path, body) {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${base}/v1${path}`, { method: "POST", headers, body: JSON.stringify(body) });
  assert.ok(response.ok, await response.clone().text());
  return response.json();
}

const receiver = await startReceiver();
const { verificationKey } = await post("/webhooks", { url: receiver.url, events: ["delivered"], format: "sendgrid" });
await post("/emails/send", { from: "hello@demo.example", to: `sgh-${run}@example.com`, subject: "Hi", html: "Hi" });
const { headers, body } = await received(receiver, ([event]) => event.email === `sgh-${run}@example.com`);
assert.equal(JSON.parse(body)[0].event, "delivered");

const { EventWebhook, EventWebhookHeader } = eventWebhook;
const verifier = new EventWebhook();
const publicKey = verifier.convertPublicKeyToECDSA(verificationKey);
const signature = headers[EventWebhookHeader.SIGNATURE().toLowerCase()];
const timestamp = headers[EventWebhookHeader.TIMESTAMP().toLowerCase()];
assert.equal(verifier.verifySignature(publicKey, body, signature, timestamp), true);
assert.equal(verifier.verifySignature(publicKey, `${body} `, signature, timestamp), false);
receiver.stop();
