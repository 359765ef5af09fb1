// Generates modules before the library is built, in a checkout. Needs Python 3.9 or newer.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

const script = fileURLToPath(new URL("../../bin/clients.py", import.meta.url));
if (existsSync(script)) {
  const { status, error } = spawnSync("python3", [script, "javascript"], { stdio: "inherit" });
  if (error) console.error(`python3 is needed to generate src/types.ts and others: ${error.message}`);
  process.exitCode = error ? 1 : status;
}
