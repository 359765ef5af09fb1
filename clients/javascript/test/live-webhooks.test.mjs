import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { NotFoundError, verifyWebhook, WebhookVerificationError } from "postrider";
import { newEmail, postrider, until } from "./service.mjs";

/** Record the posted requests while the callback runs. */
async function receiving(callback) {
  const received = [];
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    received.push({ headers: request.headers, body: Buffer.concat(chunks) });
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await callback(`http://127.0.0.1:${server.address().port}/hook`, received);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("requests of the service are verified in both forms, before and after a rotation", async () => {
  await receiving(async (url, received) => {
    const { id, secret } = await postrider.webhooks.create({ url, events: ["delivered"] });
    const sent = await postrider.emails.send(newEmail());
    const about = (emailId) => () => received.find(({ body }) => JSON.parse(body).data.emailId === emailId);
    const { headers, body } = await until(about(sent.id), "the delivery");
    const event = await postrider.webhooks.verify(body, headers, secret);
    assert.deepEqual([event.event, event.data.emailId], ["delivered", sent.id]);
    assert.deepEqual(await verifyWebhook(body, headers["x-service-signature"], secret), event);

    const { secret: newer } = await postrider.webhooks.rotateSecret(id);
    const second = await postrider.emails.send(newEmail());
    const later = await until(about(second.id), "the second delivery");
    for (const valid of [newer, secret]) assert.ok(await verifyWebhook(later.body, later.headers, valid));
    assert.ok(await verifyWebhook(later.body, later.headers["x-service-signature"], newer));
    assert.ok(await verifyWebhook(later.body, later.headers["x-service-signature-previous"], secret));
    await assert.rejects(verifyWebhook(later.body, later.headers["x-service-signature"], secret), WebhookVerificationError);
    await postrider.webhooks.delete(id);
  });
});

test("webhooks are listed, updated, tested and deleted, and their deliveries read and replayed", async () => {
  await receiving(async (url, received) => {
    const { id } = await postrider.webhooks.create({ url, events: ["bounced"] });
    assert.ok((await postrider.webhooks.list({ limit: 100 })).data.some((webhook) => webhook.id === id));
    assert.deepEqual((await postrider.webhooks.update(id, { events: ["bounced", "failed"] })).events.sort(), ["bounced", "failed"]);
    const tested = await postrider.webhooks.test(id);
    await until(() => received.length === 1, "the test");
    const succeeded = async () => (await postrider.webhooks.deliveries(id, { status: "succeeded" })).data[0];
    assert.equal((await until(succeeded, "the log")).id, tested.id);
    const { attempts, body } = await postrider.webhooks.delivery(id, tested.id);
    assert.equal(attempts.length, 1);
    assert.equal(body, received[0].body.toString());
    await postrider.webhooks.replay(id, tested.id);
    await until(() => received.length === 2, "the replay");
    assert.equal((await postrider.webhooks.update(id, { active: false })).active, false);
    assert.deepEqual(await postrider.webhooks.delete(id), { id, deleted: true });
    await assert.rejects(postrider.webhooks.get(id), NotFoundError);
  });
});
