// Unsubscribe groups of SendGrid's Node libraries against the compatibility endpoint. Environment: URL, KEY, RUN.
const assert = require("node:assert/strict");
const sgMail = require("@sendgrid/mail");

const { URL: base, KEY: key, RUN: run } = process.env;
sgMail.setApiKey(key);
sgMail.client.setDefaultRequest("baseUrl", `${base}/compat/sendgrid`);
const mail = (to, extra = {}) => ({ from: "hello@demo.example", to, subject: "Hello", text: "It works", ...extra });
const call = async (method, url, body, qs) => (await sgMail.client.request({ method, url: `/v3${url}`, body, qs }))[1];

async function fails(call, code, field) {
  const error = await call.then(() => assert.fail("no error"), (reason) => reason);
  assert.deepEqual([error.code, error.response.body.errors[0].field], [code, field], JSON.stringify(error.response.body));
}

(async () => {
  const group = await call("POST", "/asm/groups", { name: `Group ${run}`, description: "Monthly", is_default: false });
  assert.equal((await call("PATCH", `/asm/groups/${group.id}`, { name: `Group! ${run}` })).id, group.id);
  assert.equal((await call("GET", `/asm/groups/${group.id}`)).name, `Group! ${run}`);
  assert.ok((await call("GET", "/asm/groups")).some((one) => one.id === group.id));

  const left = `sg-left-${run}@example.com`;
  const recipient_emails = [left];
  await call("POST", `/asm/groups/${group.id}/suppressions`, { recipient_emails });
  assert.deepEqual(await call("GET", `/asm/groups/${group.id}/suppressions`), [left]);
  assert.deepEqual(await call("POST", `/asm/groups/${group.id}/suppressions/search`, { recipient_emails }), [left]);
  assert.deepEqual(await call("GET", `/asm/suppressions/global/${left}`), {});
  const own = (await call("GET", `/asm/suppressions/${left}`)).suppressions.filter((one) => one.suppressed);
  assert.deepEqual(own.map((one) => one.id), [group.id]);
  assert.ok((await call("GET", "/asm/suppressions")).some((one) => one.email === left && one.group_id === group.id));
  assert.equal((await call("GET", "/asm/groups", undefined, { id: group.id }))[0].unsubscribes, 1);

  const asm = { groupId: group.id, groupsToDisplay: [group.id] };
  await sgMail.send(mail(`sg-group-${run}@example.com`, { asm }));
  await sgMail.send(mail(left, { asm }));
  await sgMail.send(mail(left));
  const back = `sg-back-${run}@example.com`;
  await call("POST", `/asm/groups/${group.id}/suppressions`, { recipient_emails: [back] });
  await call("DELETE", `/asm/groups/${group.id}/suppressions/${back}`);
  assert.deepEqual(await call("GET", `/asm/groups/${group.id}/suppressions`), [left]);
  await fails(sgMail.send(mail(left, { asm: { groupId: 30_000 } })), 400, "asm.group_id");
  await fails(sgMail.send(mail(left, { asm: { groupId: group.id, groupsToDisplay: [30_000] } })), 400, "asm.groups_to_display.0");
  const mailSettings = { bypassUnsubscribeManagement: { enable: true } };
  await fails(sgMail.send(mail(left, { asm, mailSettings })), 400, "mail_settings.bypass_unsubscribe_management");

  const old = await call("POST", "/asm/groups", { name: `Old ${run}`, description: "" });
  await call("DELETE", `/asm/groups/${old.id}`);
  await fails(call("GET", `/asm/groups/${old.id}`), 404, null);
})();
