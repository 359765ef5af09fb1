import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { verifyWebhook, WebhookVerificationError } from "postrider";
import { postrider } from "./service.mjs";

const VECTOR = process.env.WEBHOOK_VECTOR ?? new URL("../../../docs/webhook-vector.json", import.meta.url);
const vector = JSON.parse(readFileSync(VECTOR, "utf8"));
const headers = {
  "webhook-id": vector.webhookId,
  "webhook-timestamp": String(vector.timestamp),
  "webhook-signature": vector.standardSignature,
};
const LONG = { toleranceSeconds: Infinity };

async function assertRejected(...given) {
  await assert.rejects(verifyWebhook(...given), WebhookVerificationError);
}

test("x-service-signature of the vector is valid, for text and for bytes", async () => {
  for (const body of [vector.body, Buffer.from(vector.body), new TextEncoder().encode(vector.body).buffer]) {
    const event = await postrider.webhooks.verify(body, vector.signature, vector.secret);
    assert.deepEqual([event.event, event.data.to], ["bounced", "zoë@example.com"]);
  }
});

test("the Standard Webhooks signature of the vector is valid, from an object and from Headers", async () => {
  const upper = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]]));
  for (const given of [headers, upper, new Headers(headers)]) {
    assert.equal((await verifyWebhook(vector.body, given, vector.secret, LONG)).event, "bounced");
  }
  const two = { ...headers, "webhook-signature": `v1,AAAA v2,x ${vector.standardSignature}` };
  assert.ok(await verifyWebhook(vector.body, two, vector.secret, LONG));
});

test("another body, signature, secret or id is rejected", async () => {
  const other = vector.secret.replace(/^whsec_./, "whsec_A");
  await assertRejected(`${vector.body} `, vector.signature, vector.secret);
  await assertRejected(vector.body, vector.signature.replace(/^./, "0"), vector.secret);
  await assertRejected(vector.body, vector.signature.toUpperCase(), vector.secret);
  await assertRejected(vector.body, "", vector.secret);
  await assertRejected(vector.body, vector.signature, other);
  await assertRejected(vector.body, vector.signature, "");
  await assertRejected(vector.body, headers, other, LONG);
  await assertRejected(vector.body, { ...headers, "webhook-id": "whd_other" }, vector.secret, LONG);
  await assertRejected(vector.body, { ...headers, "webhook-signature": "v1," }, vector.secret, LONG);
  await assertRejected(vector.body, { ...headers, "webhook-signature": "v1,***" }, vector.secret, LONG);
});

test("an old delivery is rejected, even without its headers", async () => {
  await assertRejected(vector.body, headers, vector.secret);
  await assertRejected(vector.body, { ...headers, "webhook-timestamp": "NaN" }, vector.secret, LONG);
  await assertRejected(vector.body, { "x-service-signature": vector.signature }, vector.secret);
});

test("a parsed body is rejected with a helpful message", async () => {
  await assert.rejects(verifyWebhook(JSON.parse(vector.body), vector.signature, vector.secret), /express\.raw/);
});

test("the CommonJS build verifies too", async () => {
  const { verifyWebhook: verify } = createRequire(import.meta.url)("postrider");
  assert.equal((await verify(vector.body, vector.signature, vector.secret)).event, "bounced");
});
