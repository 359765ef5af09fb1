// The methods of Resend's Node library. Without arguments, prints the requests that each of them makes. With the names
// of methods, calls these against the compatibility endpoint and prints the statuses. Environment: URL, KEY.
import { readFileSync } from "node:fs";
import { Resend } from "resend";

const declarations = readFileSync(new URL("index.d.mts", import.meta.resolve("resend")), "utf8");
const internal = new Set(["constructor", ...[...declarations.matchAll(/private (?:readonly )?(\w+)/g)].map((found) => found[1])]);
const ID = "ID";
const NAMES = [
  "id", "name", "email", "endpoint", "html", "contactId", "segmentId", "emailId", "webhookId", "eventId", "automationId",
  "runId", "inboxId", "threadId", "draftId", "labelId",
];
const options = { ...Object.fromEntries(NAMES.map((name) => [name, ID])), steps: [], connections: [], topics: [] };
// Each method is called without arguments, with an id and with options: some of them are right.
const CANDIDATES = [[], [ID], [[]], [options], [ID, options], [{ ...options, audienceId: ID }]];

// The methods of a resource and of the resources in it, by name.
function methodsOf(object, path = []) {
  const names = path.length ? Object.getOwnPropertyNames(Object.getPrototypeOf(object)) : [];
  const own = names.filter((name) => !internal.has(name)).map((name) => [[...path, name].join("."), object[name].bind(object)]);
  const inner = Object.entries(object).filter(([, value]) => value?.resend instanceof Resend);
  return [...own, ...inner.flatMap(([name, value]) => methodsOf(value, [...path, name]))];
}

// Calls a method in each way, and returns the complete requests that it made.
async function requestsOf(method) {
  const requests = [];
  globalThis.fetch = async (url, { method: verb }) => {
    requests.push(`${verb} ${url.replace("http://x", "").split("?")[0]}`.replaceAll(ID, ":id"));
    return Response.json({});
  };
  for (const values of CANDIDATES) await Promise.resolve(values).then((given) => method(...given)).catch(() => {});
  return [...new Set(requests)].filter((request) => !/undefined|object|\/$|\/\//.test(request));
}

async function statusesOf(method) {
  const statuses = [];
  for (const values of CANDIDATES) {
    const { error } = await Promise.resolve(values).then((given) => method(...given)).catch(() => ({}));
    statuses.push(error?.statusCode);
  }
  return statuses;
}

const wanted = process.argv.slice(2);
const { URL: base, KEY: key } = process.env;
const resend = wanted.length ? new Resend(key, { baseUrl: `${base}/compat/resend` }) : new Resend("re_x", { baseUrl: "http://x" });
const results = {};
for (const [name, method] of methodsOf(resend)) {
  if (!wanted.length) results[name] = await requestsOf(method);
  if (wanted.includes(name)) results[name] = await statusesOf(method);
}
console.log(JSON.stringify(results));
