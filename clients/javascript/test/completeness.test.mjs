import assert from "node:assert/strict";
import { test } from "node:test";
import { Postrider } from "postrider";

const METHODS = new Set(["get", "post", "patch", "delete"]);
// The OpenAPI document is not an operation of the library.
const EXCLUDED = "GET /v1/openapi.json";

/** Return every operation in the OpenAPI document of the running service. */
async function documentedOperations() {
  const { paths } = await (await fetch(`${process.env.POSTRIDER_URL}/v1/openapi.json`)).json();
  const operations = Object.entries(paths).flatMap(([path, item]) =>
    Object.keys(item)
      .filter((method) => METHODS.has(method))
      .map((method) => `${method.toUpperCase()} ${path.replace(/\{\w+\}/g, "an-id")}`),
  );
  return new Set(operations.filter((operation) => operation !== EXCLUDED));
}

/** Return the operation that each method requests. */
async function requestedOperations() {
  const seen = new Set();
  const record = async (url, { method }) => {
    seen.add(`${method} ${new URL(url).pathname}`);
    return Response.json({ data: [], total: 0, page: 1, limit: 20, cursor: "", hasMore: false });
  };
  const client = new Postrider("pr_x", { baseUrl: "http://service", fetch: record });
  await client.me();
  for (const resource of resourcesOf(client)) {
    for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(resource))) {
      if (name !== "constructor" && resource[name] !== client.webhooks.verify) await request(resource, name);
    }
  }
  return seen;
}

/** Return the resources of the client, and theirs. */
function resourcesOf(parent) {
  return Object.values(parent).flatMap((resource) => [resource, ...resourcesOf(resource)]);
}

/** Call a method. A stream sends its request when it is read. */
async function request(resource, name) {
  const answer = resource[name]("an-id", "an-id");
  if (answer[Symbol.asyncIterator]) for await (const item of answer) assert.fail(item);
  else await answer;
}

test("each operation of the service has a method, and each method an operation", async () => {
  assert.deepEqual([...(await requestedOperations())].sort(), [...(await documentedOperations())].sort());
});
