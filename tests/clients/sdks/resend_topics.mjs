// Topics of Resend's Node library against the compatibility endpoint. Environment: see resend_client.mjs.
import assert from "node:assert/strict";
import { eventually, fails, ok, resend, run, simple } from "./resend_client.mjs";

const name = `Topic ${run}`;
const topic = await ok(resend.topics.create({ name, description: "Monthly", defaultSubscription: "opt_in" }));
await fails(resend.topics.create({ name, defaultSubscription: "opt_out" }), 422, "validation_error");
const read = await ok(resend.topics.get(topic.id));
assert.deepEqual([read.id, read.name, read.description, read.default_subscription], [topic.id, name, "Monthly", "opt_in"]);
assert.ok((await ok(resend.topics.list())).data.some((one) => one.id === topic.id));
assert.equal((await ok(resend.topics.update({ id: topic.id, name: `${name}!` }))).id, topic.id);

const to = `rs-topic-${run}@example.com`;
const sent = await ok(resend.emails.send(simple(to, { topicId: topic.id })));
assert.equal((await ok(resend.emails.get(sent.id))).topic_id, topic.id);
const many = [1, 2].map((n) => simple(`rs-topic${n}-${run}@example.com`, { topicId: n === 1 ? topic.id : undefined }));
const batch = await ok(resend.batch.send(many));
const topics = await Promise.all(batch.data.map(async ({ id }) => (await ok(resend.emails.get(id))).topic_id));
assert.deepEqual(topics, [topic.id, null]);
await fails(resend.emails.send(simple(to, { topicId: crypto.randomUUID() })), 422, "validation_error");
await eventually(() => resend.emails.get(sent.id), (email) => email.last_event === "delivered");

const old = await ok(resend.topics.create({ name: `Old ${run}`, defaultSubscription: "opt_in" }));
assert.equal((await ok(resend.topics.remove(old.id))).deleted, true);
await fails(resend.topics.get(old.id), 404, "not_found");
await fails(resend.emails.send(simple(to, { topicId: old.id })), 422, "validation_error");
