import assert from "node:assert/strict";
import http from "node:http";
import { test } from "node:test";
import { Postrider, TimeoutError, ValidationError } from "postrider";
import { newEmail, postrider } from "./service.mjs";

const EVENT = { id: "evt_1", type: "email.sent", event: "sent", cursor: "next", data: {} };

/** Return the next event of the email, and leave the iterator open. */
async function find(events, emailId) {
  for (let { value, done } = await events.next(); !done; { value, done } = await events.next()) {
    if (value.data.emailId === emailId) return value;
  }
  throw new Error(`no event of ${emailId}`);
}

/** Run with a client of a server that sends this text as a stream. */
async function withStream(text, options, act) {
  const server = http.createServer((_request, response) => {
    response.writeHead(200, { "Content-Type": "text/event-stream" });
    response.write(text);
    if (options.ends) response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await act(new Postrider(undefined, { baseUrl: `http://127.0.0.1:${server.address().port}`, ...options }));
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

test("a stream yields events while it is open, and the list has the same ones", async () => {
  const { cursor } = await postrider.events.list({ after: "latest" });
  const filters = { after: cursor, types: ["queued", "delivered"] };
  const stream = postrider.events.stream(filters);
  const { id } = await postrider.emails.send(newEmail());
  const found = [await find(stream, id), await find(stream, id)];
  found.push(await find(stream, (await postrider.emails.send(newEmail())).id));
  await stream.return();
  assert.deepEqual(found.map(({ event }) => event), ["queued", "delivered", "queued"]);
  const listed = new Map();
  for await (const event of postrider.events.list({ ...filters, limit: 1 })) listed.set(event.id, event);
  for (const event of found) assert.deepEqual(listed.get(event.id), event);
});

test("an invalid cursor of a stream is an error", async () => {
  await assert.rejects(postrider.events.stream({ after: "nonsense" }).next(), ValidationError);
});

test("an incomplete line at the end of a stream is no event", async () => {
  const text = `: waiting\n\nid: next\ndata: ${JSON.stringify(EVENT)}\n\ndata: {`;
  await withStream(text, { ends: true }, async (client) => {
    const events = [];
    for await (const event of client.events.stream()) events.push(event);
    assert.deepEqual(events, [EVENT]);
  });
});

test("a stream that becomes silent is TimeoutError", async () => {
  await withStream(`data: ${JSON.stringify(EVENT)}\n\n`, { timeoutMs: 2_000, maxRetries: 0 }, async (client) => {
    const stream = client.events.stream();
    assert.deepEqual((await stream.next()).value, EVENT);
    await assert.rejects(stream.next(), TimeoutError);
  });
});

test("an aborted stream throws the reason", async () => {
  await withStream(`data: ${JSON.stringify(EVENT)}\n\n`, {}, async (client) => {
    const controller = new AbortController();
    const stream = client.events.stream({}, { signal: controller.signal });
    await stream.next();
    const next = stream.next();
    controller.abort(new Error("enough"));
    await assert.rejects(next, /enough/);
  });
});
