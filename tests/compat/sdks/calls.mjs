// Lists the requests that the methods of a library make. Argument: postmark.
const ID = "ID";
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

await { postmark }[process.argv[2]]();
const known = [...calls].filter((call) => !/undefined|object/.test(call));
console.log(JSON.stringify(known.map((call) => call.replace(/\/$/, "")).sort()));
process.exit(0);
