// Domains, templates and suppressions of Resend's Node library against the compatibility endpoint. Environment: see
// resend_client.mjs.
import assert from "node:assert/strict";
import { fails, from, ok, resend, run } from "./resend_client.mjs";

const domain = await ok(resend.domains.create({ name: `mail-${run}.example`, region: "eu-west-1", tls: "enforced" }));
assert.equal(domain.status, "not_started");
assert.deepEqual(domain.records.map((record) => record.record), ["DKIM", "SPF", "SPF"]);
assert.deepEqual((await ok(resend.domains.get(domain.id))).records, domain.records);
assert.equal((await ok(resend.domains.update({ id: domain.id, tls: "opportunistic", clickTracking: true }))).id, domain.id);
assert.deepEqual(await ok(resend.domains.verify(domain.id)), { object: "domain", id: domain.id });
const domains = await ok(resend.domains.list({ limit: 1 }));
assert.deepEqual([domains.data[0].id, domains.has_more], [domain.id, true]);
await fails(resend.domains.create({ name: domain.name }), 403, "validation_error");
assert.equal((await ok(resend.domains.remove(domain.id))).deleted, true);
await fails(resend.domains.get(domain.id), 404, "not_found");

const tracking = { openTracking: false, clickTracking: true, trackingSubdomain: "links" };
const tracked = await ok(resend.domains.create({ name: `tracked-${run}.example`, ...tracking }));
const trackingOf = (found) => [found.open_tracking, found.click_tracking, found.tracking_subdomain];
assert.deepEqual(trackingOf(tracked), [false, true, "links"]);
const record = tracked.records.find(({ record }) => record === "Tracking");
assert.deepEqual([record.type, record.name, record.value], ["CNAME", `links.${tracked.name}`, "mail.service.example"]);
await ok(resend.domains.update({ id: tracked.id, openTracking: true, trackingSubdomain: "click" }));
assert.deepEqual(trackingOf(await ok(resend.domains.get(tracked.id))), [true, true, "click"]);
await fails(resend.domains.update({ id: tracked.id, trackingSubdomain: "a.b" }), 422, "validation_error");
await ok(resend.domains.remove(tracked.id));

const alias = `order-${run}`;
const variables = [
  { key: "PRODUCT", type: "string", fallbackValue: "item" },
  { key: "PRICE", type: "number", fallbackValue: 20 },
];
const content = { name: "Order", alias, subject: "Your {{{PRODUCT}}}", html: "<p>{{{PRODUCT}}} for {{{PRICE}}}</p>", variables };
const template = await ok(resend.templates.create(content).publish());
const read = await ok(resend.templates.get(alias));
assert.deepEqual([read.id, read.status, read.name], [template.id, "published", "Order"]);
assert.deepEqual(read.variables.map(({ key, fallback_value }) => [key, fallback_value]), [["PRODUCT", "item"], ["PRICE", "20"]]);
const to = `template-${run}@example.com`;
const sent = await ok(resend.emails.send({ from, to, template: { id: template.id, variables: { PRICE: 7 } } }));
assert.equal((await ok(resend.emails.get(sent.id))).subject, "Your item");
await ok(resend.templates.update(alias, { subject: "A {{{PRODUCT}}}" }));
await ok(resend.templates.publish(template.id));
const copy = await ok(resend.templates.duplicate(alias));
assert.deepEqual((await ok(resend.templates.list({ limit: 1 }))).data.map(({ id }) => id), [copy.id]);
assert.equal((await ok(resend.templates.remove(copy.id))).deleted, true);
await fails(resend.templates.create({ name: "A", html: "{{#if" }), 422, "validation_error");

const email = `gone-${run}@example.com`;
const added = await ok(resend.suppressions.add({ email }));
assert.equal((await ok(resend.suppressions.get(email))).id, added.id);
assert.ok((await ok(resend.suppressions.list({ origin: "manual" }))).data.some((one) => one.email === email));
const dropped = await ok(resend.emails.send({ from, to: email, subject: "Hi", text: "Hi" }));
assert.equal((await ok(resend.emails.get(dropped.id))).object, "email");
assert.equal((await ok(resend.suppressions.remove(added.id))).deleted, true);
const emails = [1, 2].map((n) => `gone${n}-${run}@example.com`);
const batch = await ok(resend.suppressions.batch.add({ emails }));
assert.equal(batch.data.length, 2);
assert.equal((await ok(resend.suppressions.batch.remove({ ids: [batch.data[0].id] }))).data.length, 1);
assert.equal((await ok(resend.suppressions.batch.remove({ emails }))).data.length, 1);
