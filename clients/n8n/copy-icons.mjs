// tsc leaves pictures behind; n8n looks for a node's icon beside its compiled file.
import { copyFileSync } from "node:fs";

for (const folder of ["nodes/Postrider", "credentials"]) {
  copyFileSync("nodes/Postrider/postrider.svg", `dist/${folder}/postrider.svg`);
}
