// Lists the requests that the methods of a library make. Argument: postmark or sendgrid.
import { readFile } from "node:fs/promises";

const ID = "ID";
const SENDGRID_SUBJECTS = new RegExp(
  "^/v3/(asm|categories|mail|messages|scopes|stats|suppression|templates|user/scheduled_sends|user/webhooks|whitelabel)(/|$)",
);
const NAMES = ["id", "emailId", "webhookId", "eventId", "endpoint", "html", "name"];
const OPTIONS = Object.fromEntries(NAMES.map((name) => [name, ID]));

const calls = new Set();
const note = (method, url) => calls.add(`${method.toUpperCase()} ${url.split("?")[0].replaceAll(ID, ":id")}`);

// Calls each method without arguments, with an id and with options: one of them is right.
async function callAll(object) {
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(object))) {
    if (name === "constructor" || typeof object[name] !== "function") continue;
    for (const first of [[], [ID], [{ ...OPTIONS }], [ID, { ...OPTIONS }]]) {
      try {
        await object[name](...first);
      } catch {
        // Not the arguments of this method.
      }
    }
  }
}

async function postmark() {
  const { ServerClient } = (await import("postmark")).default;
  const client = new ServerClient("token");
  client.httpClient.httpRequest = async (method, url) => note(method, url) ?? {};
  process.on("uncaughtException", () => {}); // the last argument of some methods is a callback
  await callAll(client);
}

// @sendgrid/client has no methods: its own test, which is a part of the package, makes all requests.
async function sendgrid() {
  const { default: mail } = await import("@sendgrid/mail");
  mail.client.request = async ({ method, url }) => note(method, url);
  const email = { to: ["a@example.com"], from: "b@example.com", subject: "Hi", text: "Hi" };
  await mail.send(email);
  await mail.sendMultiple(email);
  const source = await readFile("node_modules/@sendgrid/client/src/client.spec.js", "utf8");
  for (const [, method, url] of source.matchAll(/request\.method = '([A-Z]+)';\s+request\.url = '([^']+)'/g)) {
    if (SENDGRID_SUBJECTS.test(url)) note(method, url.replace(/\{[^}]*\}/g, ID));
  }
}

await { postmark, sendgrid }[process.argv[2]]();
const known = [...calls].filter((call) => !/undefined|object/.test(call));
console.log(JSON.stringify(known.map((call) => call.replace(/\/$/, "")).sort()));
process.exit(0);
