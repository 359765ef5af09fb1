// Message streams of Postmark's Node library against the compatibility endpoint. Environment: URL, KEY, RUN.
import assert from "node:assert/strict";
import postmark from "postmark";

const { URL: base, KEY: key, RUN: run } = process.env;
const client = new postmark.ServerClient(key, {
  requestHost: `${base.replace("http://", "")}/compat/postmark`,
  useHttps: false,
});
const { CreateMessageStreamRequest, UpdateMessageStreamRequest, UnsubscribeHandlingTypes } = postmark.Models;
const news = `pm-news-${run}`;
const alerts = `pm-alerts-${run}`;
const mail = (To, MessageStream) => ({ From: "hello@demo.example", To, Subject: "Hi", TextBody: "Hi", MessageStream });
const entries = (EmailAddress) => ({ Suppressions: [{ EmailAddress }] });

async function fails(call, type, code) {
  const error = await call.then(() => assert.fail("no error"), (reason) => reason);
  assert.deepEqual([error.name, error.code], [type, code], String(error));
}

const created = await client.createMessageStream(new CreateMessageStreamRequest(news, "News", "Broadcasts", "Monthly"));
assert.deepEqual([created.ID, created.MessageStreamType, created.ArchivedAt], [news, "Broadcasts", null]);
assert.deepEqual(created.SubscriptionManagementConfiguration, { UnsubscribeHandlingType: UnsubscribeHandlingTypes.Postmark });
const none = { UnsubscribeHandlingType: UnsubscribeHandlingTypes.None };
await client.createMessageStream(new CreateMessageStreamRequest(alerts, "Alerts", "Transactional", "", none));
await fails(client.createMessageStream(new CreateMessageStreamRequest(news, "News", "Broadcasts")), "ApiInputError", 1230);
assert.deepEqual(await client.getMessageStream(news), created);
const listed = await client.getMessageStreams({ messageStreamType: "Broadcasts" });
assert.ok(listed.MessageStreams.some((stream) => stream.ID === news));
assert.ok((await client.getMessageStreams()).MessageStreams.some((stream) => stream.MessageStreamType === "Inbound"));
const edited = await client.editMessageStream(news, new UpdateMessageStreamRequest("The news"));
assert.deepEqual([edited.Name, edited.Description], ["The news", "Monthly"]);
await fails(client.getMessageStream("nothing"), "ApiInputError", 1226);

const address = `pm-reader-${run}@example.com`;
assert.equal((await client.createSuppressions(news, entries(address))).Suppressions[0].Status, "Suppressed");
const [suppressed] = (await client.getSuppressions(news, { emailAddress: address })).Suppressions;
assert.deepEqual([suppressed.SuppressionReason, suppressed.Origin], ["ManualSuppression", "Customer"]);
assert.deepEqual((await client.getSuppressions("outbound", { emailAddress: address })).Suppressions, []);
await fails(client.sendEmail(mail(address, news)), "InactiveRecipientsError", 406);
assert.equal((await client.sendEmail(mail(address, "outbound"))).ErrorCode, 0);
assert.equal((await client.sendEmail(mail(`pm-alert-${run}@example.com`, alerts))).ErrorCode, 0);
assert.equal((await client.deleteSuppressions(news, entries(address))).Suppressions[0].Status, "Deleted");
const sent = await client.sendEmail(mail(address, news));
assert.equal((await client.getOutboundMessageDetails(sent.MessageID)).MessageStream, news);
const found = await client.getOutboundMessages({ messageStream: news });
assert.deepEqual(found.Messages.map((message) => message.MessageID), [sent.MessageID]);
await fails(client.sendEmail(mail(address, "nothing")), "ApiInputError", 1235);
const batch = await client.sendEmailBatch([mail(address, news), mail(address, "nothing")]);
assert.deepEqual(batch.map((one) => one.ErrorCode), [0, 1235]);

assert.equal((await client.sendEmail(mail(`pm-subscriber-${run}@example.com`, news))).ErrorCode, 0);

const Url = `https://hooks.example.com/streams-${run}`;
const webhook = await client.createWebhook({ Url, MessageStream: news, Triggers: { Open: { Enabled: true } } });
assert.equal((await client.getWebhook(webhook.ID)).MessageStream, news);
assert.ok((await client.getWebhooks({ messageStream: news })).Webhooks.some((one) => one.ID === webhook.ID));
assert.ok(!(await client.getWebhooks({ messageStream: "outbound" })).Webhooks.some((one) => one.ID === webhook.ID));
await client.deleteWebhook(webhook.ID);

const archived = await client.archiveMessageStream(alerts);
assert.equal(archived.ID, alerts);
const days = (new Date(archived.ExpectedPurgeDate) - Date.now()) / 86_400_000;
assert.ok(days > 44 && days < 46, String(days));
const all = await client.getMessageStreams({ includeArchivedStreams: true });
assert.ok(all.MessageStreams.some((stream) => stream.ID === alerts));
assert.ok(!(await client.getMessageStreams()).MessageStreams.some((stream) => stream.ID === alerts));
assert.equal((await client.unarchiveMessageStream(alerts)).ArchivedAt, null);
await fails(client.archiveMessageStream("outbound"), "ApiInputError", 1229);
