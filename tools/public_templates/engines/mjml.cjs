// MJML: a line of JSON with the source in, a line of JSON with the HTML out.
const mjml2html = require("mjml");
const readline = require("node:readline");

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { html } = mjml2html(JSON.parse(line).source, { validationLevel: "skip" });
  console.log(JSON.stringify({ html }));
});
