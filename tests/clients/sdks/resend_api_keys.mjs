// API keys of Resend's Node library against the compatibility endpoint. Environment: see resend_client.mjs; KEY is a
// key with the scope workspace_admin.
import assert from "node:assert/strict";
import { Resend } from "resend";
import { fails, ok, resend, run, simple } from "./resend_client.mjs";

const key = await ok(resend.apiKeys.create({ name: `Website ${run}`, permission: "sending_access" }));
const website = new Resend(key.token, { baseUrl: `${process.env.URL}/compat/resend` });
await ok(website.emails.send(simple(`key-${run}@example.com`)));
await fails(website.apiKeys.list(), 401, "restricted_api_key");
const listed = (await ok(resend.apiKeys.list())).data.find((one) => one.id === key.id);
assert.equal(listed.name, `Website ${run}`);
await ok(resend.apiKeys.remove(key.id));
assert.ok(!(await ok(resend.apiKeys.list())).data.some((one) => one.id === key.id));
