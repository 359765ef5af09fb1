// SendGrid's Node libraries against the compatibility endpoint. Environment: URL, KEY, RUN.
const assert = require("node:assert/strict");
const sgMail = require("@sendgrid/mail");

const { URL: base, KEY: key, RUN: run } = process.env;
sgMail.setApiKey(key);
sgMail.client.setDefaultRequest("baseUrl", `${base}/compat/sendgrid`);
const from = { email: "hello@demo.example", name: "Demo" };
const simple = (to, extra = {}) => ({ from, to, subject: "Hello", text: "It works", ...extra });

async function fails(call, code, field) {
  const error = await call.then(() => assert.fail("no error"), (reason) => reason);
  assert.equal(error.constructor.name, "ResponseError", String(error));
  assert.deepEqual([error.code, error.response.body.errors[0].field], [code, field], JSON.stringify(error.response.body));
}

(async () => {
  const [response] = await sgMail.send({
    from,
    to: `sg-ada-${run}@example.com`,
    cc: `sg-carol-${run}@example.com`,
    bcc: `sg-dan-${run}@example.com`,
    replyToList: [{ email: "one@demo.example" }, { email: "two@demo.example" }],
    subject: "Everything \u2013 \u2713",
    html: '<p>Hello</p><img src="cid:logo">',
    text: "Hello in text",
    headers: { "X-Entity-Ref-ID": run },
    categories: ["welcome"],
    customArgs: { run },
    attachments: [
      { filename: "notes.txt", type: "text/plain", content: Buffer.from("Notes").toString("base64") },
      { filename: "logo.png", type: "image/png", content: "iVBORw==", disposition: "inline", contentId: "logo" },
    ],
    trackingSettings: { clickTracking: { enable: false } },
  });
  assert.deepEqual([response.statusCode, response.body], [202, ""]);
  assert.match(response.headers["x-message-id"], /^[0-9a-f-]{36}$/);

  await sgMail.sendMultiple(simple([1, 2].map((n) => `sg-many${n}-${run}@example.com`)));
  await sgMail.send(simple(`sg-later-${run}@example.com`, { sendAt: Math.floor(Date.now() / 1000) + 3600 }));
  const [sandboxed] = await sgMail.send(simple("ada@example.com", { mailSettings: { sandboxMode: { enable: true } } }));
  assert.equal(sandboxed.statusCode, 200);
  await sgMail.send({
    from,
    personalizations: [{ to: `sg-sub-${run}@example.com`, substitutions: { name: "Ada" } }],
    subject: "Hi {{name}}",
    text: "Hi {{name}}",
  });
  await sgMail.send({ from, to: `sg-tpl-${run}@example.com`, templateId: "d-welcome-" + run, dynamicTemplateData: { name: "Ada" } });

  await fails(sgMail.send(simple("nobody")), 400, "personalizations.0.to.0.email");
  await fails(sgMail.send({ ...simple("ada@example.com"), from: "hi@elsewhere.example" }), 403, "from");
  const [, scopes] = await sgMail.client.request({ method: "GET", url: "/v3/scopes" });
  assert.ok(scopes.scopes.includes("mail.send"));
  sgMail.setApiKey("SG.wrong");
  sgMail.client.setDefaultRequest("baseUrl", `${base}/compat/sendgrid`);
  await fails(sgMail.send(simple("ada@example.com")), 401, null);
})();
