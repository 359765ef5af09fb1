import assert from "node:assert/strict";
import { test } from "node:test";
import { execute, loader, loadOptions } from "./harness/n8n.mjs";

test("debug", async () => {
  console.log(Object.keys(loader.nodeTypes), Object.keys(loader.credentialTypes));
  console.log(await execute({ resource: "email", operation: "send", from: "hello@demo.example", to: "ada@example.com", subject: "={{ 'Hi ' + $json.name }}", html: "<p>Hi</p>", options: {} }, { items: [{ json: { name: "Ada" } }, { json: { name: "Bob" } }] }));
  console.log(await loadOptions("getTemplates"));
});
