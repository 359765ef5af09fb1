// Postmark's Node library against the compatibility endpoint. Environment: URL, KEY, RUN. Prints nothing on success.
import assert from "node:assert/strict";
import postmark from "postmark";

const { URL: base, KEY: key, RUN: run } = process.env;
const options = { requestHost: `${base.replace("http://", "")}/compat/postmark`, useHttps: false };
const client = new postmark.ServerClient(key, options);
const From = "Demo <hello@demo.example>";
const simple = (To, extra = {}) => ({ From, To, Subject: "Hello", TextBody: "It works", ...extra });

async function until(find) {
  for (const limit = Date.now() + 120_000; Date.now() < limit; await new Promise((done) => setTimeout(done, 200))) {
    const found = await find();
    if (found) return found;
  }
  return assert.fail("not within 120 s");
}

async function fails(call, type, code) {
  const error = await call.then(() => assert.fail("no error"), (reason) => reason);
  assert.equal(error.name, type, String(error));
  assert.equal(error.code, code);
  return error;
}

const sent = await client.sendEmail({
  From,
  To: `pm-ada-${run}@example.com`,
  Cc: `pm-carol-${run}@example.com`,
  Bcc: `pm-dan-${run}@example.com`,
  ReplyTo: "one@demo.example, two@demo.example",
  Subject: "Everything \u2013 \u2713",
  HtmlBody: '<p>Hello</p><img src="cid:logo">',
  TextBody: "Hello in text",
  Tag: "welcome",
  Metadata: { run },
  Headers: [{ Name: "X-Entity-Ref-ID", Value: run }],
  TrackOpens: true,
  TrackLinks: postmark.Models.LinkTrackingOptions.HtmlAndText,
  Attachments: [
    new postmark.Models.Attachment("notes.txt", Buffer.from("Notes").toString("base64"), "text/plain"),
    new postmark.Models.Attachment("logo.png", "iVBORw==", "image/png", "cid:logo"),
  ],
});
assert.deepEqual([sent.ErrorCode, sent.Message], [0, "OK"]);
const details = await client.getOutboundMessageDetails(sent.MessageID);
assert.deepEqual([details.Tag, details.Metadata], ["welcome", { run }]);
const found = await client.getOutboundMessages({ recipient: `pm-ada-${run}@example.com` });
assert.equal(found.Messages[0].MessageID, sent.MessageID);

const batch = await client.sendEmailBatch([simple(`pm-many-${run}@example.com`), simple("nobody")]);
assert.deepEqual(batch.map((one) => one.ErrorCode), [0, 300]);

const inactive = `pm-gone-${run}@example.com`;
await client.createSuppressions("outbound", { Suppressions: [{ EmailAddress: inactive }] });
const refused = await fails(client.sendEmail(simple(inactive)), "InactiveRecipientsError", 406);
assert.deepEqual(refused.recipients, [inactive]);
const partly = await client.sendEmail(simple(`${inactive}, pm-eve-${run}@example.com`));
assert.match(partly.Message, /these inactive addresses: /);
const dump = await client.getSuppressions("outbound", { emailAddress: inactive });
assert.equal(dump.Suppressions[0].SuppressionReason, "ManualSuppression");
const deleted = await client.deleteSuppressions("outbound", { Suppressions: [{ EmailAddress: inactive }] });
assert.equal(deleted.Suppressions[0].Status, "Deleted");
assert.equal((await client.sendEmail(simple(inactive))).ErrorCode, 0);

const alias = `hello-${run}`;
const template = await client.createTemplate({ Name: "T", Alias: alias, Subject: "Hi {{name}}", HtmlBody: "<p>{{name}}</p>" });
const model = { From, To: `pm-tpl-${run}@example.com`, TemplateModel: { name: "Ada" } };
assert.equal((await client.sendEmailWithTemplate({ ...model, TemplateAlias: alias })).ErrorCode, 0);
assert.equal((await client.sendEmailWithTemplate({ ...model, TemplateId: template.TemplateId })).ErrorCode, 0);
const some = await client.sendEmailBatchWithTemplates([{ ...model, TemplateAlias: alias }, { ...model, TemplateAlias: "none" }]);
assert.deepEqual(some.map((one) => one.ErrorCode), [0, 1101]);
await client.editTemplate(alias, { Subject: "Hello {{name}}" });
assert.equal((await client.getTemplate(template.TemplateId)).Subject, "Hello {{name}}");
assert.ok((await client.getTemplates()).Templates.some((one) => one.Alias === alias));
const valid = await client.validateTemplate({ Subject: "{{#if}", HtmlBody: "<p>{{name}}</p>", TestRenderModel: { name: "Ada" } });
assert.deepEqual([valid.AllContentIsValid, valid.HtmlBody.RenderedContent], [false, "<p>Ada</p>"]);
await client.deleteTemplate(alias);
await fails(client.getTemplate(alias), "ApiInputError", 1101);

for (const call of [client.getMessageOpensForSingleMessage, client.getMessageClicksForSingleMessage]) {
  assert.equal((await call.call(client, sent.MessageID)).TotalCount, 0);
}
assert.equal((await client.getMessageStreams()).MessageStreams[0].ID, "outbound");
assert.equal((await client.getMessageStream("outbound")).MessageStreamType, "Transactional");

const address = `bounced+${run}@simulator.example`;
const bouncing = await client.sendEmail(simple(address));
const bounce = await until(async () => (await client.getBounces({ messageID: bouncing.MessageID })).Bounces[0]);
assert.deepEqual([bounce.Type, bounce.Email, bounce.Inactive], ["HardBounce", address, true]);
assert.equal((await client.getBounce(bounce.ID)).MessageID, bouncing.MessageID);
assert.equal((await client.getBounceDump(bounce.ID)).Body, "5.1.1 The simulator knows no such user");
assert.equal((await client.activateBounce(bounce.ID)).Bounce.Inactive, false);

const Url = `https://hooks.example.com/${run}`;
const webhook = await client.createWebhook({ Url, Triggers: { Open: { Enabled: true }, Bounce: { Enabled: true } } });
assert.ok((await client.getWebhooks()).Webhooks.some((one) => one.ID === webhook.ID));
await client.editWebhook(webhook.ID, { Triggers: { Click: { Enabled: true } } });
assert.equal((await client.getWebhook(webhook.ID)).Triggers.Click.Enabled, true);
await client.deleteWebhook(webhook.ID);
await fails(client.getWebhook(webhook.ID), "PostmarkError", 404);

assert.ok((await client.getOutboundOverview()).Sent > 0);
const days = ["getSentCounts", "getBounceCounts", "getSpamComplaintsCounts", "getEmailOpenCounts", "getClickCounts"];
for (const name of days) assert.equal((await client[name]()).Days.length, 30, name);
await fails(client.getTrackedEmailCounts(), "UnknownError", 501);

const bulk = await client.sendBulkEmail({
  From,
  Subject: "Hi {{name}}",
  TextBody: "Hi {{name}}",
  Messages: [{ To: `pm-bulk-${run}@example.com`, TemplateModel: { name: "Ada" } }, { To: `pm-bulk2-${run}@example.com` }],
});
assert.equal(bulk.Status, "Accepted");
assert.equal((await client.getBulkEmailStatus(bulk.Id)).TotalMessages, 2);

const tester = new postmark.ServerClient("POSTMARK_API_TEST", options);
assert.equal((await tester.sendEmail(simple("ada@example.com"))).Message, "Test job accepted");
await fails(tester.sendEmail(simple("nobody")), "InvalidEmailRequestError", 300);
const twice = { Headers: [{ Name: "X-A", Value: "1" }, { Name: "X-A", Value: "2" }] };
await fails(client.sendEmail(simple("ada@example.com", twice)), "InvalidEmailRequestError", 300);

assert.ok("InactiveMails" in (await client.getDeliveryStatistics()));
assert.ok((await client.getBounces()).TotalCount >= 0);
await fails(client.sendEmail(simple("ada@example.com", { From: "hi@elsewhere.example" })), "ApiInputError", 400);
await fails(client.sendEmail(simple("nobody")), "InvalidEmailRequestError", 300);
await fails(client.getMessageOpens(), "UnknownError", 501);
await fails(new postmark.ServerClient("wrong", options).sendEmail(simple("ada@example.com")), "InvalidAPIKeyError", 10);
