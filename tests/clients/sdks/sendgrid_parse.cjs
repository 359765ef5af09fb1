// Inbound parse of SendGrid's Node library against the compatibility endpoint. Environment: URL, KEY, HOSTNAME.
const assert = require("node:assert/strict");
const client = require("@sendgrid/client");

const { URL: base, KEY: key, HOSTNAME: hostname } = process.env;
client.setApiKey(key);
client.setDefaultRequest("baseUrl", `${base}/compat/sendgrid`);
const SETTINGS = "/v3/user/webhooks/parse/settings";
const call = async (method, url, body, qs) => (await client.request({ method, url, body, qs }))[0];

(async () => {
  const setting = { hostname, url: "https://app.example/parse", spam_check: false, send_raw: true };
  const created = await call("POST", SETTINGS, setting);
  assert.deepEqual([created.statusCode, created.body], [201, setting]);
  assert.ok((await call("GET", SETTINGS)).body.result.some((one) => one.hostname === hostname));
  assert.deepEqual((await call("GET", `${SETTINGS}/${hostname}`)).body, setting);
  const changed = { ...setting, send_raw: false };
  assert.deepEqual((await call("PATCH", `${SETTINGS}/${hostname}`, { send_raw: false })).body, changed);
  const start_date = new Date().toISOString().slice(0, 10);
  const [day] = (await call("GET", "/v3/user/webhooks/parse/stats", undefined, { start_date })).body;
  assert.deepEqual([day.date, Number.isInteger(day.stats[0].metrics.received)], [start_date, true]);
  assert.equal((await call("DELETE", `${SETTINGS}/${hostname}`)).statusCode, 204);
  const error = await call("GET", `${SETTINGS}/${hostname}`).then(() => assert.fail("no error"), (reason) => reason);
  assert.equal(error.code, 404);
})();
