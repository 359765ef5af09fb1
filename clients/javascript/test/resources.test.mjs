import assert from "node:assert/strict";
import { test } from "node:test";
import { AlertExistsError, ApiError, NotFoundError, RecipientSuppressedError, StreamArchivedError, StreamExistsError, StreamNotFoundError, TemplateSyntaxError } from "postrider";
import { newEmail, postrider, someone } from "./service.mjs";

test("me returns workspace, key and quota", async () => {
  const { workspace, key, quota } = await postrider.me();
  assert.match(workspace.id, /^ws_/);
  assert.equal(key.scope, "full_access");
  assert.equal(typeof quota.used, "number");
});

test("templates are created, previewed, updated, listed and deleted", async () => {
  const alias = `a${crypto.randomUUID()}`;
  const fields = { name: "Welcome", subject: "Hi {{name}}", htmlContent: "<p>{{name}}</p>", alias };
  const { id } = await postrider.templates.create(fields);
  assert.deepEqual((await postrider.templates.preview(id, { name: "Ada" })).subject, "Hi Ada");
  assert.deepEqual((await postrider.templates.preview(id)).missingVariables, ["name"]);
  assert.equal((await postrider.templates.update(id, { name: "Hello" })).name, "Hello");
  assert.equal((await postrider.templates.get(id)).htmlContent, "<p>{{name}}</p>");
  const listed = [];
  for await (const template of postrider.templates.list()) listed.push(template.id);
  assert.ok(listed.includes(id));
  assert.deepEqual(await postrider.templates.delete(id), { id, deleted: true });
  await assert.rejects(postrider.templates.get(id), NotFoundError);
});

test("a template syntax error has its position", async () => {
  const broken = { name: "Broken", subject: "Hi", htmlContent: "<p>\n  {{#if x}}" };
  await assert.rejects(postrider.templates.create(broken), (error) => {
    assert.ok(error instanceof TemplateSyntaxError);
    assert.deepEqual([error.field, typeof error.line, typeof error.column], ["htmlContent", "number", "number"]);
    return true;
  });
});

test("suppressions are created, found, kept when created again, and deleted", async () => {
  const email = someone();
  const created = await postrider.suppressions.create(email);
  assert.deepEqual(await postrider.suppressions.create(email), created);
  assert.deepEqual(await postrider.suppressions.get(created.id), created);
  const many = await postrider.suppressions.createMany([email, someone()]);
  assert.deepEqual([many.length, many[0]], [2, created]);
  const found = await postrider.suppressions.list({ search: email, reason: "manual" });
  assert.deepEqual(found.data, [created]);
  assert.equal((await postrider.suppressions.delete(created.id)).deleted, true);
});

/** Call until the error is thrown: the processes of the service notice an archived stream within a second. */
async function refusedWith(error, call) {
  for (const end = Date.now() + 10_000; Date.now() < end; ) {
    try {
      await call();
    } catch (caught) {
      assert.ok(caught instanceof error);
      return;
    }
  }
  assert.fail("not refused within 10 s");
}

test("a stream is created, used, changed, archived and unarchived", async () => {
  const id = `s-${crypto.randomUUID().slice(0, 8)}`;
  const created = await postrider.streams.create({ id, name: "News", kind: "bulk", trackOpens: false });
  assert.deepEqual([created.public, created.priority, created.trackOpens], [true, "low", false]);
  await assert.rejects(postrider.streams.create({ id, name: "News" }), StreamExistsError);
  const ids = [];
  for await (const stream of postrider.streams.list({ limit: 1 })) ids.push(stream.id);
  assert.ok(ids[0] === "main" && ids.includes(id));
  assert.equal((await postrider.streams.update(id, { name: "Monthly" })).name, "Monthly");
  assert.equal((await postrider.streams.get(id)).name, "Monthly");
  const sent = await postrider.emails.send(newEmail({ stream: id }));
  assert.equal((await postrider.emails.get(sent.id)).stream, id);
  assert.deepEqual((await postrider.emails.list({ stream: id })).data.map((email) => email.id), [sent.id]);
  assert.ok((await postrider.emails.export({ stream: id })).csv.includes(sent.id));
  assert.equal((await postrider.streams.get(id)).counts.total, 1);
  assert.equal((await postrider.analytics.get({ stream: id })).total, 1);
  assert.equal((await postrider.analytics.daily(1, { stream: id }))[0].total, 1);
  assert.ok((await postrider.streams.archive(id)).archivedAt);
  await refusedWith(StreamArchivedError, () => postrider.emails.send(newEmail({ stream: id })));
  assert.equal((await postrider.streams.unarchive(id)).archivedAt, null);
  await assert.rejects(postrider.emails.send(newEmail({ stream: "unknown" })), StreamNotFoundError);
});

test("an alert is created, listed, changed and deleted", async () => {
  const alert = await postrider.alerts.create({ metric: "failure_rate", threshold: 12.5, emailOwners: false });
  assert.deepEqual([alert.stream, alert.triggeredAt, alert.emailOwners], [undefined, null, false]);
  await assert.rejects(postrider.alerts.create({ metric: "failure_rate", threshold: 12.5 }), (error) => {
    assert.ok(error instanceof AlertExistsError);
    return error.alertId === alert.id;
  });
  const ids = [];
  for await (const one of postrider.alerts.list({ limit: 1 })) ids.push(one.id);
  assert.ok(ids.includes(alert.id));
  assert.equal((await postrider.alerts.update(alert.id, { threshold: 13 })).threshold, 13);
  assert.equal((await postrider.alerts.get(alert.id)).threshold, 13);
  assert.deepEqual(await postrider.alerts.delete(alert.id), { id: alert.id, deleted: true });
  await assert.rejects(postrider.alerts.get(alert.id), NotFoundError);
});

test("an address is suppressed in one stream only", async () => {
  const id = `s-${crypto.randomUUID().slice(0, 8)}`;
  await postrider.streams.create({ id, name: "News", kind: "bulk" });
  const to = someone();
  const created = await postrider.suppressions.create(to, { stream: id });
  assert.deepEqual([created, ...(await postrider.suppressions.createMany([to], { stream: id }))], [created, created]);
  assert.deepEqual((await postrider.suppressions.list({ stream: id })).data, [created]);
  await assert.rejects(postrider.emails.send(newEmail({ to, stream: id })), (error) => {
    assert.ok(error instanceof RecipientSuppressedError);
    return error.recipients[0].stream === id;
  });
  const webhook = await postrider.webhooks.create({ url: "https://example.com/news", events: ["clicked"], streams: [id] });
  assert.deepEqual(webhook.streams, [id]);
  assert.equal((await postrider.webhooks.update(webhook.id, { streams: [] })).streams, undefined);
  const { stream } = await postrider.emails.get((await postrider.emails.send(newEmail({ to }))).id);
  assert.equal(stream, undefined);
});

test("domains are registered and listed", async () => {
  const name = `d${Date.now()}.example`;
  const { id, records, status } = await postrider.domains.create(name);
  assert.equal(status, "pending");
  assert.ok(Array.isArray(records));
  assert.equal((await postrider.domains.get(id)).name, name);
  assert.ok((await postrider.domains.list({ limit: 100 })).data.some((domain) => domain.id === id));
  await assert.rejects(postrider.domains.create(name), (error) => {
    assert.ok(error instanceof ApiError);
    return error.code === "domain_already_exists";
  });
});

test("a domain is verified, which fails without DNS records, and deleted", async () => {
  const { id } = await postrider.domains.create(`v${Date.now()}.invalid`);
  const checked = await postrider.domains.verify(id);
  assert.notEqual(checked.status, "verified");
  assert.ok(checked.lastCheckedAt);
  // The first key is not in the DNS yet, so it is not replaced.
  assert.deepEqual((await postrider.domains.rotateDkim(id)).records, checked.records);
  assert.deepEqual(await postrider.domains.delete(id), { id, deleted: true });
});
