// Emails of Resend's Node library against the compatibility endpoint. Environment: see resend_client.mjs.
import assert from "node:assert/strict";
import { fails, from, ok, resend, run, simple, stranger } from "./resend_client.mjs";

const soon = () => new Date(Date.now() + 3_600_000).toISOString();

const everything = {
  from,
  to: [`ada-${run}@example.com`],
  cc: `carol-${run}@example.com`,
  bcc: [`dan-${run}@example.com`],
  replyTo: ["one@demo.example", "two@demo.example"],
  subject: "Everything – ✓",
  html: '<p>Hello</p><img src="cid:logo">',
  text: "Hello in text",
  headers: { "X-Entity-Ref-ID": run },
  tags: [{ name: "run", value: run }],
  attachments: [
    { filename: "notes.txt", content: Buffer.from("Notes") },
    { filename: "logo.png", content: "iVBORw==", contentType: "image/png", contentId: "logo" },
  ],
};
const sent = await ok(resend.emails.send(everything, { idempotencyKey: `resend-${run}` }));
const again = await ok(resend.emails.send(everything, { idempotencyKey: `resend-${run}` }));
assert.equal(again.id, sent.id);
const read = await ok(resend.emails.get(sent.id));
assert.deepEqual([read.object, read.id, read.subject, read.from], ["email", sent.id, everything.subject, from]);
assert.deepEqual([read.cc, read.bcc, read.reply_to], [[everything.cc], everything.bcc, everything.replyTo]);
assert.deepEqual([read.html, read.text, read.tags], [everything.html, everything.text, everything.tags]);
const files = await ok(resend.emails.attachments.list({ emailId: sent.id }));
assert.deepEqual(files.data.map((file) => file.filename), ["notes.txt", "logo.png"]);

const scheduled = await ok(resend.emails.send(simple(`eve-${run}@example.com`, { scheduledAt: soon() })));
assert.equal((await ok(resend.emails.get(scheduled.id))).last_event, "scheduled");
await ok(resend.emails.update({ id: scheduled.id, scheduledAt: soon() }));
await ok(resend.emails.cancel(scheduled.id));
assert.equal((await ok(resend.emails.get(scheduled.id))).last_event, "canceled");

const many = [1, 2, 3].map((n) => simple(`many${n}-${run}@example.com`));
assert.equal((await ok(resend.batch.send(many))).data.length, 3);
await fails(resend.batch.send([simple("nobody"), ...many]), 422, "validation_error");
const partly = await ok(resend.batch.send([simple("nobody"), ...many], { batchValidation: "permissive" }));
assert.deepEqual([partly.data.length, partly.errors[0].index], [3, 0]);

const page = await ok(resend.emails.list({ limit: 2 }));
assert.deepEqual([page.object, page.data.length, page.has_more], ["list", 2, true]);
const next = await ok(resend.emails.list({ limit: 2, after: page.data[1].id }));
assert.ok(!page.data.some((email) => next.data.some((other) => other.id === email.id)));

await fails(resend.emails.send({ ...simple("ada@example.com"), from: "hi@elsewhere.example" }), 403, "validation_error");
await fails(resend.emails.send({ ...simple("ada@example.com"), subject: undefined }), 422, "missing_required_field");
await fails(resend.emails.get("00000000-0000-4000-8000-000000000000"), 404, "not_found");
await fails(resend.broadcasts.list(), 501, "application_error");
await fails(stranger.emails.send(simple("ada@example.com")), 403, "invalid_api_key");

const created = await ok(resend.emails.create(simple(`created-${run}@example.com`)));
assert.equal((await ok(resend.emails.get(created.id))).to[0], `created-${run}@example.com`);
assert.equal((await ok(resend.batch.create(many))).data.length, 3);
