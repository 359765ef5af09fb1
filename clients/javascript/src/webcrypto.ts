// Node 18 has Web Crypto in a module alone. The name is a variable so that bundlers for the edge do not look for it.
const NODE_MODULE = "node:crypto";

export async function webcrypto(): Promise<Crypto> {
  return globalThis.crypto ?? (await import(/* webpackIgnore: true */ /* @vite-ignore */ NODE_MODULE)).webcrypto;
}
