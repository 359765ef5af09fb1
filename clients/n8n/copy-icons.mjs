// tsc does not copy images, and n8n expects the icons next to the compiled node.
import { copyFileSync } from "node:fs";

for (const file of ["postrider.svg", "postrider.dark.svg"]) {
  copyFileSync(`nodes/Postrider/${file}`, `dist/nodes/Postrider/${file}`);
}
