// The MCP server resend-mcp, unchanged, with the base URL in its environment. Argument: its file.
// Environment: URL, KEY, RUN.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [server] = process.argv.slice(2);
// The protocol library that the server itself depends on.
const require = createRequire(server);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

const { URL: base, KEY: key, RUN: run, PATH } = process.env;
const env = { PATH, RESEND_API_KEY: key, RESEND_BASE_URL: `${base}/compat/resend` };
const client = new Client({ name: "test", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command: "node", args: [server], env }));

async function call(name, values) {
  const { isError, content } = await client.callTool({ name, arguments: values });
  const text = content.map((part) => part.text).join("\n");
  assert.ok(!isError, text);
  return text;
}

const tools = (await client.listTools()).tools.map((tool) => tool.name);
assert.ok(tools.includes("send-email"), tools);
const to = `mcp-${run}@example.com`;
const sent = await call("send-email", { from: "hello@demo.example", to: [to], subject: "From MCP", text: "It works" });
assert.match(sent, /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/);
assert.ok((await call("list-emails", {})).includes("From MCP"));
assert.ok((await call("list-domains", {})).includes("demo.example"));
await client.close();
