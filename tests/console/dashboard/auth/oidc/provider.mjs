// oidc-provider with the client and people of a JSON file: node provider.mjs MODULE CONFIGURATION
// The people are read again for each request, so that a test can change them.
import { readFileSync } from "node:fs";

const [, , module, file] = process.argv;
const { default: Provider } = await import(module);
const read = () => JSON.parse(readFileSync(file, "utf8"));
const { issuer, port, client } = read();

const provider = new Provider(issuer, {
  clients: [client],
  claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
  acrValues: ["urn:example:mfa"],
  features: {
    devInteractions: { enabled: true },
    rpInitiatedLogout: { enabled: true },
    backchannelLogout: { enabled: true },
  },
  pkce: { required: () => true },
  cookies: { keys: ["for a test"] },
  findAccount: async (_ctx, id) => {
    const claims = read().people[id];
    return claims && { accountId: id, claims: async () => ({ sub: id, ...claims }) };
  },
});
provider.on("server_error", (_ctx, error) => console.error(error));
provider.listen(port, "127.0.0.1", () => console.log("ready"));
