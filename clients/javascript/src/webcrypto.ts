// In Node 18, Web Crypto is only available from a module. The name is a variable so that edge bundlers do not resolve it.
const NODE_MODULE = "node:crypto";

export async function webcrypto(): Promise<Crypto> {
  return globalThis.crypto ?? (await import(/* webpackIgnore: true */ /* @vite-ignore */ NODE_MODULE)).webcrypto;
}
