// tsc does not copy images, and n8n expects the icon next to the compiled node.
import { copyFileSync } from "node:fs";

for (const folder of ["nodes/Postrider", "credentials"]) {
  copyFileSync("nodes/Postrider/postrider.svg", `dist/${folder}/postrider.svg`);
}
