import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConflictError,
  EmailAlreadySentError,
  IdempotencyKeyReuseError,
  NotFoundError,
  RecipientSuppressedError,
  ValidationError,
} from "postrider";
import { FROM, inAnHour, newEmail, postrider, someone, until } from "./service.mjs";

test("an email is accepted, delivered, and has a timeline", async () => {
  const to = someone();
  const { id, status } = await postrider.emails.send(newEmail({ to, tags: ["javascript"], metadata: { order: 7 } }));
  assert.equal(status, "queued");
  const email = await until(async () => {
    const found = await postrider.emails.get(id);
    return found.deliveredAt && found;
  }, "the delivery");
  assert.deepEqual([email.to, email.from, email.metadata, email.tags], [to, FROM, { order: 7 }, ["javascript"]]);
  const events = await postrider.emails.events(id);
  assert.deepEqual(events.map((event) => event.eventType), ["queued", "sent", "delivered"]);
  assert.equal(events[0].payload.emailId, id);
});

test("attachments can be base64, Buffer, Uint8Array, ArrayBuffer or Blob", async () => {
  const bytes = Uint8Array.from({ length: 100_000 }, (_, index) => index % 251);
  const contents = [Buffer.from(bytes).toString("base64"), Buffer.from(bytes), bytes, bytes.buffer, new Blob([bytes])];
  const attachments = contents.map((content, index) => ({ filename: `${index}.bin`, content, contentId: `part-${index}` }));
  const { id } = await postrider.emails.send(newEmail({ attachments }));
  const kept = (await postrider.emails.get(id)).attachments;
  assert.deepEqual(kept.map((file) => file.size), Array(5).fill(100_000));
});

test("an invalid attachment is rejected before anything is sent", async () => {
  await assert.rejects(postrider.emails.send(newEmail({ attachments: [{ filename: "a", content: { a: 1 } }] })), TypeError);
});

test("check returns the rendered email", async () => {
  const checked = await postrider.emails.check(newEmail({ text: "Hi there" }));
  assert.deepEqual(checked, { valid: true, subject: "Hello", html: "<p>Hi</p>", text: "Hi there", warnings: [] });
});

test("all invalid fields are reported at once", async () => {
  const refused = postrider.emails.send({ from: "nobody", to: [], subject: "Hello", scheduledfor: "2030-01-01" });
  await assert.rejects(refused, (error) => {
    assert.ok(error instanceof ValidationError);
    assert.deepEqual(new Set(error.errors.map(({ field }) => field)), new Set(["from", "to", "html", "scheduledfor"]));
    assert.equal(error.code, "validation_error");
    assert.match(error.message, /^from: .* 3 more errors\.$/);
    assert.match(error.requestId, /^req_/);
    return true;
  });
});

test("a suppressed recipient is reported", async () => {
  const to = someone();
  const { id } = await postrider.suppressions.create(to);
  await assert.rejects(postrider.emails.send(newEmail({ to })), (error) => {
    assert.ok(error instanceof RecipientSuppressedError);
    assert.deepEqual(error.recipients, [{ email: to, field: "to[0]", reason: "manual", suppressionId: id }]);
    return true;
  });
});

test("a scheduled email is rescheduled, cancelled, and cancelled again", async () => {
  const { id, status } = await postrider.emails.send(newEmail({ scheduledFor: inAnHour() }));
  assert.equal(status, "scheduled");
  const later = new Date(Date.now() + 7_200_000);
  assert.equal((await postrider.emails.reschedule(id, later)).scheduledFor, later.toISOString());
  assert.deepEqual(await postrider.emails.cancel(id), { id, status: "cancelled" });
  assert.deepEqual(await postrider.emails.cancel(id), { id, status: "cancelled" });
  await assert.rejects(postrider.emails.reschedule(id, null), ConflictError);
});

test("a sent email cannot be cancelled, and can be resent", async () => {
  const { id } = await postrider.emails.send(newEmail());
  await until(async () => (await postrider.emails.get(id)).sentAt, "the sending");
  await assert.rejects(postrider.emails.cancel(id), EmailAlreadySentError);
  const again = await postrider.emails.resend(id);
  assert.notEqual(again.id, id);
});

test("a batch returns an id for each recipient, and lists rejected recipients", async () => {
  const suppressed = someone();
  await postrider.suppressions.create(suppressed);
  const template = await postrider.templates.create({ name: "Hi", subject: "Hi {{name}}", htmlContent: "<p>{{name}}</p>" });
  const recipients = [{ to: someone(), templateData: { name: "Ada" } }, { to: suppressed }];
  const { queued, ids, rejected } = await postrider.emails.batch({ from: FROM, templateId: template.id, recipients });
  assert.equal(queued, 1);
  assert.deepEqual(rejected, [{ index: 1, to: suppressed, code: "recipient_suppressed" }]);
  assert.equal((await postrider.emails.get(ids[0])).subject, "Hi Ada");
});

test("an idempotency key is lenient in the body and strict as an option", async () => {
  const key = crypto.randomUUID();
  const first = await postrider.emails.send(newEmail({ idempotencyKey: key }));
  assert.equal((await postrider.emails.send(newEmail({ idempotencyKey: key }))).id, first.id);
  await assert.rejects(postrider.emails.send(newEmail(), { idempotencyKey: key }), IdempotencyKeyReuseError);
});

test("a list is one page when awaited, and all pages with for await", async () => {
  const tag = `list-${crypto.randomUUID()}`;
  for (let count = 0; count < 5; count++) await postrider.emails.send(newEmail({ tags: [tag], scheduledFor: inAnHour() }));
  const page = await postrider.emails.list({ tag, limit: 2, page: 2 });
  assert.deepEqual([page.total, page.page, page.limit, page.data.length], [5, 2, 2, 2]);
  const ids = [];
  for await (const email of postrider.emails.list({ tag, limit: 2 })) {
    ids.push(email.id);
    // A new email moves an item to the next page; it is not repeated.
    if (ids.length === 1) await postrider.emails.send(newEmail({ tags: [tag], scheduledFor: inAnHour() }));
  }
  assert.deepEqual([ids.length, new Set(ids).size], [5, 5]);
  const none = await postrider.emails.list({ tag, status: ["queued", "sent"], from: new Date() });
  assert.deepEqual(none.data, []);
});

test("the export is CSV", async () => {
  const tag = `export-${crypto.randomUUID()}`;
  const { id } = await postrider.emails.send(newEmail({ tags: [tag] }));
  const { csv, truncated } = await postrider.emails.export({ tag });
  assert.equal(truncated, false);
  assert.deepEqual(csv.trim().split("\r\n").map((line) => line.split(",")[0]), ['"id"', `"${id}"`]);
});

test("an unknown id is NotFoundError; an empty id or dots are not requested", async () => {
  await assert.rejects(postrider.emails.get("0Uf7m2kQ9VxHc3NwZrTb4L"), NotFoundError);
  for (const id of ["", ".", "..", undefined]) await assert.rejects(postrider.emails.cancel(id), /not an id/);
  await assert.rejects(postrider.emails.get("a/../../me?x=1#y"), NotFoundError);
});
