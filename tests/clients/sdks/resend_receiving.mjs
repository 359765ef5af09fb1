// Received emails of Resend's Node library. Environment: see resend_client.mjs, and TEST_KEY, a test key.
import assert from "node:assert/strict";
import { received, startReceiver } from "./receiver.mjs";
import { eventually, fails, from, ok, resend, run } from "./resend_client.mjs";

const { URL: base, KEY, TEST_KEY } = process.env;
const call = async (method, path, key, body) => {
  const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
  const response = await fetch(`${base}/v1${path}`, { method, headers, body: body && JSON.stringify(body) });
  assert.ok(response.ok, await response.clone().text());
  return response.json();
};

const receiver = await startReceiver();
const webhook = await ok(resend.webhooks.create({ endpoint: receiver.url, events: ["email.received"] }));
const recipient = (await call("GET", "/inbound", KEY)).address.replace("@", `+${run}@`);
const picture = Buffer.from([...Array(256).keys()]);
const raw = [
  "From: Ada <ada@example.com>", `To: ${recipient}`, `Subject: Received ${run}`, `Message-ID: <${run}@example.com>`,
  "Content-Type: multipart/mixed; boundary=m", "", "--m", "Content-Type: text/html", "", '<img src="cid:logo">',
  "--m", "Content-Type: image/png; name=logo.png", "Content-ID: <logo>", "Content-Disposition: inline; filename=logo.png",
  "Content-Transfer-Encoding: base64", "", picture.toString("base64"), "--m--", "",
].join("\r\n");
await call("POST", "/inbound/emails", TEST_KEY, { recipient, envelopeFrom: "ada@example.com", raw });

const { headers, body } = await received(receiver, ({ data }) => data.subject === `Received ${run}`);
const event = resend.webhooks.verify({
  payload: body,
  headers: { id: headers["svix-id"], timestamp: headers["svix-timestamp"], signature: headers["svix-signature"] },
  webhookSecret: webhook.signing_secret,
});
assert.equal(event.type, "email.received");
assert.deepEqual([event.data.from, event.data.to, event.data.received_for], ["Ada <ada@example.com>", [recipient], [recipient]]);

const id = event.data.email_id;
const listed = await eventually(() => resend.emails.receiving.list({ limit: 5 }), ({ data }) => data.some((one) => one.id === id));
const email = await ok(resend.emails.receiving.get(id));
const item = listed.data.find((one) => one.id === id);
assert.deepEqual([item.subject, email.subject, email.message_id], [event.data.subject, event.data.subject, `<${run}@example.com>`]);
assert.ok(email.html.includes(`data:image/png;base64,${picture.toString("base64")}`));
assert.ok((await ok(resend.emails.receiving.get(id, { html_format: "cid" }))).html.includes("cid:logo"));
assert.equal(email.headers.subject, event.data.subject);
const source = await (await fetch(email.raw.download_url)).text();
assert.ok(source.endsWith(raw));

const { data: files } = await ok(resend.emails.receiving.attachments.list({ emailId: id }));
assert.deepEqual(files.map((file) => [file.filename, file.size]), [["logo.png", 256]]);
const file = await ok(resend.emails.receiving.attachments.get({ emailId: id, id: files[0].id }));
assert.deepEqual(Buffer.from(await (await fetch(file.download_url)).arrayBuffer()), picture);
await fails(resend.emails.receiving.get(webhook.id), 404, "not_found");

const forwarded = await ok(resend.emails.receiving.forward({ emailId: id, to: `rs-fwd-${run}@example.com`, from }));
const sent = await ok(resend.emails.attachments.list({ emailId: forwarded.id }));
assert.deepEqual(sent.data.map((one) => one.filename), ["logo.png"]);
const copy = await ok(resend.emails.attachments.get({ emailId: forwarded.id, id: sent.data[0].id }));
assert.deepEqual(Buffer.from(await (await fetch(copy.download_url)).arrayBuffer()), picture);
await ok(resend.webhooks.remove(webhook.id));
receiver.stop();
