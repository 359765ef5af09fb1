// Received emails of Postmark's Node library. Environment: URL, KEY, RUN, and TEST_KEY, a test key.
import assert from "node:assert/strict";
import postmark from "postmark";
import { received, startReceiver } from "./receiver.mjs";

const { URL: base, KEY: key, TEST_KEY, RUN: run } = process.env;
const options = { requestHost: `${base.replace("http://", "")}/compat/postmark`, useHttps: false };
const client = new postmark.ServerClient(key, options);

const receiver = await startReceiver();
const url = receiver.url.replace("http://", "http://user:secret@");
const server = await client.editServer({ InboundHookUrl: url, RawEmailEnabled: true });
assert.deepEqual([server.InboundHookUrl, server.RawEmailEnabled], [receiver.url, true]);
const recipient = (await client.getServer()).InboundAddress.replace("@", `+pm-${run}@`);
const raw = `From: Ada <ada@example.com>\r\nTo: ${recipient}\r\nSubject: Received\r\n\r\nHello\r\n`;
const simulated = await fetch(`${base}/v1/inbound/emails`, {
  method: "POST",
  headers: { authorization: `Bearer ${TEST_KEY}`, "content-type": "application/json" },
  body: JSON.stringify({ recipient, envelopeFrom: "ada@example.com", raw }),
});
assert.equal(simulated.status, 202);

const { headers, body } = await received(receiver, ({ MailboxHash }) => MailboxHash === `pm-${run}`);
assert.equal(headers.authorization, `Basic ${Buffer.from("user:secret").toString("base64")}`);
const message = JSON.parse(body);
assert.deepEqual([message.From, message.FromName, message.OriginalRecipient], ["ada@example.com", "Ada", recipient]);
assert.ok(message.RawEmail.endsWith(raw));

const found = await client.getInboundMessages({ mailboxHash: `pm-${run}` });
assert.deepEqual(found.InboundMessages.map((one) => one.MessageID), [message.MessageID]);
const details = await client.getInboundMessageDetails(message.MessageID);
assert.deepEqual([details.Subject, details.TextBody.trim(), details.BlockedReason], ["Received", "Hello", ""]);
const refused = await client.bypassBlockedInboundMessage(message.MessageID).catch((error) => error);
assert.equal(refused.code, 702);
assert.equal((await client.retryInboundHookForMessage(message.MessageID)).ErrorCode, 0);

const rule = await client.createInboundRuleTrigger({ Rule: `pm-${run}.example` });
const rules = await client.getInboundRuleTriggers();
assert.ok(rules.InboundRules.some((one) => one.ID === rule.ID && one.Rule === rule.Rule));
assert.equal((await client.deleteInboundRuleTrigger(rule.ID)).ErrorCode, 0);
await client.editServer({ InboundHookUrl: "", RawEmailEnabled: false });
receiver.stop();
