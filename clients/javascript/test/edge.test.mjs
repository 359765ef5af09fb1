// An edge runtime: standard fetch and Web Crypto without Node APIs.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { EdgeRuntime } from "edge-runtime";
import { build } from "esbuild";

const VECTOR = process.env.WEBHOOK_VECTOR ?? new URL("../../../docs/webhook-vector.json", import.meta.url);

const PROGRAM = `
import { Postrider, verifyWebhook } from "postrider";

async function answer() {
  const client = new Postrider(KEY, { baseUrl: BASE });
  const content = new TextEncoder().encode("hello");
  const fields = { from: "hello@demo.example", to: "delivered@simulator.example", subject: "Hi", text: "Hi" };
  const { status } = await client.emails.send({ ...fields, attachments: [{ filename: "a.txt", content }] });
  const { event } = await verifyWebhook(VECTOR.body, VECTOR.signature, VECTOR.secret);
  return Response.json({ status, event, process: typeof process, buffer: typeof Buffer });
}

addEventListener("fetch", (event) => event.respondWith(answer()));
`;

test("the client sends and verifies in a runtime without Node APIs", async () => {
  const define = {
    KEY: JSON.stringify(process.env.POSTRIDER_API_KEY),
    BASE: JSON.stringify(process.env.POSTRIDER_URL),
    VECTOR: readFileSync(VECTOR, "utf8"),
  };
  const stdin = { contents: PROGRAM, resolveDir: fileURLToPath(new URL("..", import.meta.url)) };
  const { outputFiles } = await build({ stdin, bundle: true, format: "iife", write: false, define, logLevel: "error" });
  const runtime = new EdgeRuntime({ initialCode: outputFiles[0].text });
  const response = await runtime.dispatchFetch("http://edge.example/");
  assert.deepEqual(await response.json(), { status: "queued", event: "bounced", process: "undefined", buffer: "undefined" });
});
