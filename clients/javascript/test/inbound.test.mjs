import assert from "node:assert/strict";
import { after, test } from "node:test";
import { NotBlockedError, NotFoundError, NotUnreadableError, Postrider, ReceivedEmailNotFoundError, RecipientRefusedError, TestKeyRequiredError } from "postrider";
import { FROM, postrider, until } from "./service.mjs";

// Simulated emails need a test key.
const tester = new Postrider(process.env.TEST_API_KEY);

const messageFor = (to, subject) =>
  [
    "From: Ada <ada@example.com>",
    `To: <${to}>`,
    `Subject: ${subject}`,
    "Message-ID: <order@example.com>",
    "MIME-Version: 1.0",
    'Content-Type: multipart/mixed; boundary="x"',
    "",
    "--x",
    "Content-Type: text/plain; charset=utf-8",
    "",
    "Where is my order?",
    "--x",
    "Content-Type: text/plain",
    'Content-Disposition: attachment; filename="a.txt"',
    "",
    "hello",
    "--x--",
    "",
  ].join("\r\n");

// Without routes, the shared address accepts everything; other tests need that.
after(async () => {
  for await (const { id } of postrider.inbound.routes.list({ domain: "shared" })) await postrider.inbound.routes.delete(id);
});

/** Return a route of the shared address, and an address that it matches. */
async function newRoute(fields = {}) {
  const { address } = await postrider.inbound.get();
  const label = crypto.randomUUID().slice(0, 8);
  const route = await postrider.inbound.routes.create({ name: "Test", domain: "shared", match: `*+${label}`, ...fields });
  return { route, to: address.replace("@", `+${label}@`) };
}

async function receive(to, subject = "Where is it?") {
  const { id } = await tester.inbound.emails.simulate({ recipient: to, envelopeFrom: "ada@example.com", raw: messageFor(to, subject) });
  return until(async () => {
    const email = await postrider.inbound.emails.get(id);
    return email.status === "stored" ? undefined : email;
  }, "the reading");
}

test("a simulated email is read, found, downloaded and deleted", async () => {
  const { route, to } = await newRoute();
  const subject = `Order ${crypto.randomUUID()}`;
  const email = await receive(to, subject);
  assert.deepEqual([email.status, email.routeId, email.recipient, email.test], ["processed", route.id, to, true]);
  assert.deepEqual([email.from, email.text.trim()], [{ email: "ada@example.com", name: "Ada" }, "Where is my order?"]);
  const { data } = await postrider.inbound.emails.list({ subject, from: "ADA@", test: true, after: new Date(Date.now() - 3_600_000) });
  assert.deepEqual(data.map((one) => one.id), [email.id]);
  assert.equal((await postrider.inbound.emails.list({ subject, test: false })).total, 0);
  const [file] = email.attachments;
  const text = async (bytes) => new TextDecoder().decode(await bytes);
  assert.equal(await text(postrider.inbound.emails.attachment(email.id, file.id)), "hello");
  assert.equal(await (await fetch(file.url)).text(), "hello");
  assert.ok((await text(postrider.inbound.emails.raw(email.id))).endsWith(messageFor(to, subject)));
  // Other tests leave webhooks.
  const deliveries = (await postrider.webhooks.list({ limit: 100 })).data.filter((one) => one.active && one.events.includes("received")).length;
  assert.deepEqual(await postrider.inbound.emails.redeliver(email.id), { id: email.id, deliveries });
  await assert.rejects(postrider.inbound.emails.reread(email.id), NotUnreadableError);
  assert.equal((await postrider.inbound.emails.delete(email.id)).deleted, true);
  await assert.rejects(postrider.inbound.emails.get(email.id), NotFoundError);
});

test("a blocked email is released once", async () => {
  const { to } = await newRoute({ requireAuthenticated: true });
  const email = await receive(to);
  assert.deepEqual([email.status, email.blockedReason], ["blocked", "not_authenticated"]);
  assert.equal((await postrider.inbound.emails.bypass(email.id)).status, "processed");
  await assert.rejects(postrider.inbound.emails.bypass(email.id), NotBlockedError);
});

test("a simulation needs a test key and a recipient", async () => {
  const message = { recipient: "nobody@in.demo.example", raw: messageFor("nobody@in.demo.example", "Hi") };
  await assert.rejects(postrider.inbound.emails.simulate(message), TestKeyRequiredError);
  await assert.rejects(tester.inbound.emails.simulate(message), (error) => {
    assert.ok(error instanceof RecipientRefusedError);
    return error.reply.startsWith("550 5.1.1");
  });
});

test("a received email is answered", async () => {
  const { to } = await newRoute();
  const email = await receive(to, "Order 7");
  const answer = await tester.emails.send({ from: FROM, inReplyToId: email.id, text: "On its way.", replyTracking: true });
  const sent = await tester.emails.get(answer.id);
  assert.deepEqual([sent.to, sent.subject, sent.headers["In-Reply-To"]], ["ada@example.com", "Re: Order 7", email.messageId]);
  await assert.rejects(postrider.emails.send({ from: FROM, inReplyToId: "inb_0Uf7m2kQ9VxHc3NwZrTb4L", text: "Hi" }), ReceivedEmailNotFoundError);
});

test("routes are listed in order, matched, changed and deleted", async () => {
  const { route, to } = await newRoute({ priority: 7, storeDays: 3 });
  assert.deepEqual([route.storeDays, route.action, route.webhookIds], [3, "deliver", []]);
  assert.deepEqual(await postrider.inbound.routes.get(route.id), route);
  assert.ok((await postrider.inbound.routes.list({ domain: "shared", limit: 100 })).data.some((one) => one.id === route.id));
  const match = await postrider.inbound.routes.match(to);
  assert.deepEqual([match.route.id, match.reply.slice(0, 3)], [route.id, "250"]);
  assert.equal((await postrider.inbound.routes.update(route.id, { storeDays: null, action: "reject" })).storeDays, null);
  assert.equal((await postrider.inbound.routes.match(to)).reply.slice(0, 3), "550");
  assert.equal((await postrider.inbound.routes.delete(route.id)).deleted, true);
});

test("senders are blocked and unblocked", async () => {
  const sender = `${crypto.randomUUID()}.example`;
  const block = await postrider.inbound.blocks.create(sender);
  assert.deepEqual(await postrider.inbound.blocks.create(sender.toUpperCase()), block);
  assert.ok((await postrider.inbound.blocks.list({ limit: 100 })).data.some((one) => one.id === block.id));
  assert.equal((await postrider.inbound.blocks.delete(block.id)).sender, sender);
});
