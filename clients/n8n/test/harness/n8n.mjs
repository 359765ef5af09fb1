// n8n's package loader, workflow engine and contexts. The tests provide the parts that n8n's server stores in its
// database: the credential and the workflow.
import { createRequire } from "node:module";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

process.env.N8N_USER_FOLDER = mkdtempSync(join(tmpdir(), "n8n-"));
process.env.N8N_ENCRYPTION_KEY = "an encryption key for tests alone";
process.env.N8N_LOG_LEVEL = "silent";
process.env.NODE_ENV = "test";

const require = createRequire(import.meta.url);
require("reflect-metadata");
const core = require("n8n-core");
const { createRunExecutionData, Workflow } = require("n8n-workflow");

const PACKAGE = join(dirname(fileURLToPath(import.meta.url)), "../..");
export const loader = new core.PackageDirectoryLoader(PACKAGE);
await loader.loadAll();

const CREDENTIAL = { postriderApi: { id: "1", name: "Postrider" } };
const SOURCE = { description: { displayName: "Source", name: "source", group: [], version: 1, defaults: {}, inputs: [], outputs: ["main"], properties: [] } };
const nodeTypes = {
  getByName: (name) => nodeTypes.getByNameAndVersion(name),
  getByNameAndVersion: (name) => (name === "source" ? SOURCE : loader.nodeTypes[name.split(".").pop()].type),
  getKnownTypes: () => loader.known.nodes,
};

export function credentialOf(fields = {}) {
  return { baseUrl: process.env.POSTRIDER_URL, apiKey: process.env.POSTRIDER_API_KEY, ...fields };
}

/** Evaluate the expressions of a credential type, as n8n does. */
async function evaluated(fields, credential) {
  const { workflow, node } = workflowOf("postrider", {});
  await workflow.expression.acquireIsolate();
  const keys = { $credentials: credential };
  const entries = Object.entries(fields).map(([name, text]) => [name, workflow.expression.getSimpleParameterValue(node, text, "internal", keys)]);
  await workflow.expression.releaseIsolate();
  return Object.fromEntries(entries);
}

function credentialsHelper(credential) {
  return {
    getParentTypes: () => [],
    isCredentialUsableByNode: () => true,
    getDecrypted: async () => credential,
    preAuthentication: async () => undefined,
    getCredentialsProperties: () => loader.credentialTypes.postriderApi.type.properties,
    authenticate: async (decrypted, _name, request) => {
      const { properties } = loader.credentialTypes.postriderApi.type.authenticate;
      return { ...request, headers: { ...request.headers, ...(await evaluated(properties.headers, decrypted)) } };
    },
  };
}

export function workflowOf(name, parameters, { staticData = {}, settings = {}, id = "workflow-1" } = {}) {
  const node = { id: "node-1", name: "Postrider", type: `n8n-nodes-postrider.${name}`, typeVersion: 1, position: [0, 0], parameters, credentials: CREDENTIAL, webhookId: "7f0e" };
  const source = { id: "node-0", name: "Source", type: "source", typeVersion: 1, position: [0, 0], parameters: {} };
  const nodes = name.endsWith("Trigger") ? [node] : [source, node];
  const connections = { Source: { main: [[{ node: "Postrider", type: "main", index: 0 }]] } };
  const workflow = new Workflow({ id, nodes, connections, active: true, nodeTypes, staticData, settings: { executionOrder: "v1", ...settings } });
  return { workflow, node: workflow.getNode("Postrider") };
}

let executions = 0;

export function additionalData(fields = {}) {
  const executionId = fields.executionId ?? String(++executions);
  return {
    credentialsHelper: credentialsHelper(fields.credential ?? credentialOf()),
    executionId,
    hooks: new core.ExecutionLifecycleHooks("manual", executionId, {}),
    webhookBaseUrl: "http://127.0.0.1/webhook",
    webhookWaitingBaseUrl: "http://127.0.0.1/waiting",
    formWaitingBaseUrl: "http://127.0.0.1/form",
    currentNodeExecutionIndex: 0,
    variables: {},
    secretsHelpers: {},
    setExecutionStatus: () => {},
    sendDataToUI: () => {},
    logAiEvent: () => {},
    ...fields,
  };
}

/** Run the node for these items; return its items or throw its error. */
export async function execute(parameters, { items = [{ json: {} }], onError, ...fields } = {}) {
  const { workflow, node } = workflowOf("postrider", parameters, fields);
  if (onError) node.onError = onError;
  const data = additionalData(fields);
  const input = { main: [items.map((item, index) => ({ pairedItem: { item: index }, ...item }))] };
  const run = { startData: {}, resultData: { runData: {} }, executionData: { contextData: {}, nodeExecutionStack: [{ node, data: input, source: { main: [{ previousNode: "Source" }] } }], metadata: {}, waitingExecution: {}, waitingExecutionSource: {} } };
  const engine = new core.WorkflowExecute(data, "manual", createRunExecutionData(run));
  const done = await engine.processRunExecutionData(workflow);
  if (done.data.resultData.error) throw done.data.resultData.error;
  return done.data.resultData.runData.Postrider[0].data.main[0];
}

export async function loadOptions(method) {
  const { workflow, node } = workflowOf("postrider", {});
  const context = new core.LoadOptionsContext(workflow, node, additionalData(), "");
  return await loader.nodeTypes.postrider.type.methods.loadOptions[method].call(context);
}

/** Return the trigger for events with its static data and webhook methods. */
export function trigger(events, { streams = "", ...fields }) {
  return triggerNode("postriderTrigger", { events, streams }, fields);
}

/** Return the trigger for received emails. */
export function receivedTrigger(parameters, fields) {
  return triggerNode("postriderReceivedTrigger", parameters, fields);
}

function triggerNode(name, parameters, { webhookBaseUrl, staticData = {} }) {
  const { workflow, node } = workflowOf(name, parameters, { staticData });
  const { type } = loader.nodeTypes[name];
  const data = additionalData({ webhookBaseUrl });
  const webhook = { webhookDescription: type.description.webhooks[0] };
  const hook = () => new core.HookContext(workflow, node, data, "trigger", "activate", webhook);
  return {
    staticData: () => workflow.getStaticData("node", node),
    checkExists: () => type.webhookMethods.default.checkExists.call(hook()),
    create: () => type.webhookMethods.default.create.call(hook()),
    delete: () => type.webhookMethods.default.delete.call(hook()),
    receive: (httpRequest, httpResponse) =>
      type.webhook.call(new core.WebhookContext(workflow, node, { ...data, httpRequest, httpResponse }, "trigger", webhook, [], null)),
  };
}

/** Send the `test` request of the credential, as n8n does; return the status. */
export async function testCredential(credential) {
  const type = loader.credentialTypes.postriderApi.type;
  const { baseURL, url } = await evaluated(type.test.request, credential);
  const { headers } = await credentialsHelper(credential).authenticate(credential, type.name, {});
  return (await fetch(baseURL + url, { headers })).status;
}
