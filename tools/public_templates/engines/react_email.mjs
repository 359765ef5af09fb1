// React Email: renders each component named on the command line, and prints a line of JSON for each.
// Texts among the preview's properties become variables of Resend's templates: {{{COMPANY_NAME}}}.
import { build } from "esbuild";
import { createElement } from "react";
import { render } from "react-email";
import { join } from "node:path";
import { mkdtempSync } from "node:fs";
import { pathToFileURL } from "node:url";

const folder = mkdtempSync(join(process.cwd(), "built-"));

function variables(properties) {
  const texts = Object.entries(properties).filter(([, value]) => typeof value === "string");
  return Object.fromEntries(texts.map(([name]) => [name, name.replace(/([A-Z])/g, "_$1").toUpperCase()]));
}

for (const [index, path] of process.argv.slice(2).entries()) {
  const outfile = join(folder, `${index}.mjs`);
  await build({
    entryPoints: [path], outfile, bundle: true, platform: "node", format: "esm", packages: "external", jsx: "automatic",
    logLevel: "error", alias: { "tailwindcss/plugin": "tailwindcss/plugin.js" },
  });
  const { default: component } = await import(pathToFileURL(outfile));
  const properties = component.PreviewProps ?? {};
  const names = variables(properties);
  const tags = Object.fromEntries(Object.entries(names).map(([name, key]) => [name, `{{{${key}}}}`]));
  const element = createElement(component, { ...properties, ...tags });
  console.log(JSON.stringify({
    html: await render(element),
    text: await render(element, { plainText: true }),
    values: Object.fromEntries(Object.entries(names).map(([name, key]) => [key, properties[name]])),
  }));
}
