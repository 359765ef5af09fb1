// The steps of the library's own tests of layouts and push. Environment: URL, KEY, OTHER_KEY, RUN. Prints nothing.
import assert from "node:assert/strict";
import postmark from "postmark";

const { URL: base, KEY: key, OTHER_KEY: other, RUN: run } = process.env;
const options = { requestHost: `${base.replace("http://", "")}/compat/postmark`, useHttps: false };
const client = new postmark.ServerClient(key, options);
const there = new postmark.ServerClient(other, options);
const account = new postmark.AccountClient(`${key},${other}`, options);
const { CreateTemplateRequest, TemplatesPushRequest, TemplateTypes, TemplatedMessage } = postmark.Models;
const names = { template: `pm-template-${run}`, layout: `pm-layout-${run}` };

async function fails(call, message) {
  const error = await call.then(() => assert.fail("no error"), (reason) => reason);
  assert.equal(error.name, "ApiInputError", String(error));
  assert.ok(error.message.includes(message), error.message);
}

const layout = await client.createTemplate(
  new CreateTemplateRequest("Frame", undefined, "<i>{{{@content}}}</i>", "Frame {{{@content}}}", names.layout, TemplateTypes.Layout),
);
assert.deepEqual([layout.TemplateType, layout.Alias], [TemplateTypes.Layout, names.layout]);
assert.equal((await client.getTemplate(layout.TemplateId)).TemplateType, TemplateTypes.Layout);
const unnamed = await client.createTemplate(
  new CreateTemplateRequest("Unnamed", undefined, "{{{@content}}}", "{{{@content}}}", null, TemplateTypes.Layout),
);
assert.ok(unnamed.Alias);
const template = await client.createTemplate(
  new CreateTemplateRequest("Order", "Order {{id}}", "<p>{{name}}</p>", "{{name}}", names.template, TemplateTypes.Standard, names.layout),
);
assert.deepEqual([template.TemplateType, template.LayoutTemplate], [TemplateTypes.Standard, names.layout]);

const listed = async (filter) => (await client.getTemplates({ count: 100, ...filter })).Templates.map((one) => one.Alias);
const standard = await listed({ templateType: TemplateTypes.Standard });
assert.deepEqual([standard.includes(names.template), standard.includes(names.layout)], [true, false]);
assert.ok((await listed({ templateType: TemplateTypes.Layout })).includes(names.layout));
assert.deepEqual(await listed({ layoutTemplate: names.layout }), [names.template]);

assert.equal((await client.editTemplate(layout.TemplateId, { Name: "Frame, updated" })).Name, "Frame, updated");
await fails(client.editTemplate(layout.TemplateId, { HtmlBody: "Html content" }), "The layout content placeholder must be present");
await fails(client.deleteTemplate(layout.TemplateId), "Templates that use it: 1 (Order)");
assert.equal((await client.editTemplate(template.TemplateId, { LayoutTemplate: "" })).LayoutTemplate, null);
assert.equal((await client.editTemplate(template.TemplateId, { LayoutTemplate: names.layout })).LayoutTemplate, names.layout);

const valid = await client.validateTemplate({
  TemplateType: TemplateTypes.Layout,
  TestRenderModel: { Name: "joe!" },
  HtmlBody: "{{{@content}}}",
  TextBody: "text body for template {{id}} {{{@content}}}!",
});
assert.ok(valid.TextBody.ContentIsValid);
const inLayout = await client.validateTemplate({
  Subject: "Hi",
  HtmlBody: "{{name}}",
  TestRenderModel: { name: "Ada" },
  LayoutTemplate: names.layout,
});
assert.equal(inLayout.HtmlBody.RenderedContent, "<i>Ada</i>");

const message = new TemplatedMessage("Demo <hello@demo.example>", template.TemplateId, { id: 7, name: "Ada" }, `pm-layout-${run}@example.com`);
assert.equal((await client.sendEmailWithTemplate(message)).Message, "OK");

const ids = [(await client.getServer()).ID, (await there.getServer()).ID];
await fails(account.pushTemplates(new TemplatesPushRequest(0, 1, false)), "The source and destination servers were not found.");
await fails(account.pushTemplates(new TemplatesPushRequest(ids[0], 1, false)), "The destination server was not found.");
await fails(account.pushTemplates(new TemplatesPushRequest(1, ids[0], false)), "The source server was not found.");
const mine = ({ Templates }) => Templates.filter((one) => Object.values(names).includes(one.Alias)).map((one) => [one.Action, one.Alias]);
const created = [["Create", names.layout], ["Create", names.template]];
assert.deepEqual(mine(await account.pushTemplates(new TemplatesPushRequest(...ids, false))), created);
assert.equal((await there.getTemplates({ count: 1 })).TotalCount, 0);
assert.deepEqual(mine(await account.pushTemplates(new TemplatesPushRequest(...ids, true))), created);
assert.equal((await there.getTemplate(names.template)).LayoutTemplate, names.layout);
await client.editTemplate(names.template, { HtmlBody: "<b>{{name}}</b>" });
assert.deepEqual(mine(await account.pushTemplates(new TemplatesPushRequest(...ids, true))), [["Edit", names.template]]);

await client.deleteTemplate(template.TemplateId);
assert.ok((await client.deleteTemplate(layout.TemplateId)).Message);
await client.deleteTemplate(unnamed.TemplateId);
