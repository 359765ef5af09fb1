// SendGrid's Node libraries against the compatibility endpoint. Environment: URL, KEY, RUN.
const assert = require("node:assert/strict");
const { EventWebhook } = require("@sendgrid/eventwebhook");
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

  const call = async (method, url, body, qs) => (await sgMail.client.request({ method, url: `/v3${url}`, body, qs }))[1];
  const template = await call("POST", "/templates", { name: `T ${run}`, generation: "dynamic" });
  const version = { name: "v1", subject: "Hey {{name}}", html_content: "<p>{{name}}</p>" };
  const { id } = await call("POST", `/templates/${template.id}/versions`, version);
  await call("PATCH", `/templates/${template.id}/versions/${id}`, { subject: "Hello {{name}}" });
  assert.equal((await call("GET", `/templates/${template.id}`)).versions[0].subject, "Hello {{name}}");
  await sgMail.send({ from, to: `sg-new-${run}@example.com`, templateId: template.id, dynamicTemplateData: { name: "Ada" } });
  await call("DELETE", `/templates/${template.id}`);

  const { batch_id } = await call("POST", "/mail/batch");
  assert.equal((await call("GET", `/mail/batch/${batch_id}`)).batch_id, batch_id);
  const sendAt = Math.floor(Date.now() / 1000) + 3600;
  await sgMail.send(simple(`sg-batch-${run}@example.com`, { sendAt, batchId: batch_id }));
  await call("POST", "/user/scheduled_sends", { batch_id, status: "pause" });
  assert.deepEqual(await call("GET", `/user/scheduled_sends/${batch_id}`), [{ batch_id, status: "pause" }]);
  await call("PATCH", `/user/scheduled_sends/${batch_id}`, { status: "cancel" });
  assert.ok((await call("GET", "/user/scheduled_sends")).some((one) => one.batch_id === batch_id));
  await call("DELETE", `/user/scheduled_sends/${batch_id}`);

  const gone = `sg-gone-${run}@example.com`;
  await call("POST", "/asm/suppressions/global", { recipient_emails: [gone] });
  assert.equal((await call("GET", `/asm/suppressions/global/${gone}`)).recipient_email, gone);
  assert.ok((await call("GET", "/suppression/unsubscribes", undefined, { limit: 500 })).some((one) => one.email === gone));
  await call("DELETE", `/asm/suppressions/global/${gone}`);
  await call("DELETE", "/suppression/bounces", { emails: [gone] });

  const [domain] = await call("GET", "/whitelabel/domains");
  assert.equal((await call("GET", `/whitelabel/domains/${domain.id}`)).domain, domain.domain);
  const url = `https://hooks.example.com/sg-${run}`;
  const settings = await call("PATCH", "/user/webhooks/event/settings", { enabled: true, url, delivered: true, open: true });
  assert.deepEqual([settings.url, settings.open, settings.click], [url, true, false]);
  const { public_key } = await call("GET", "/user/webhooks/event/settings/signed");
  assert.ok(new EventWebhook().convertPublicKeyToECDSA(public_key));
  await call("PATCH", "/user/webhooks/event/settings", { enabled: false });
  const start_date = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
  assert.ok((await call("GET", "/stats", undefined, { start_date })).some((day) => day.stats[0].metrics.requests > 0));
  await fails(call("GET", "/categories"), 501, null);

  sgMail.setApiKey("SG.wrong");
  sgMail.client.setDefaultRequest("baseUrl", `${base}/compat/sendgrid`);
  await fails(sgMail.send(simple("ada@example.com")), 401, null);
})();
