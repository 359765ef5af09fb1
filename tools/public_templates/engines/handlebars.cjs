// Handlebars with the helpers of SendGrid's dynamic templates: a line of JSON in, a line of JSON out.
// https://www.twilio.com/docs/sendgrid/for-developers/sending-email/using-handlebars
const handlebars = require("handlebars");
const readline = require("node:readline");

const comparisons = {
  equals: (a, b) => a === b,
  notEquals: (a, b) => a !== b,
  greaterThan: (a, b) => a > b,
  lessThan: (a, b) => a < b,
  and: (a, b) => a && b,
  or: (a, b) => a || b,
};
for (const [name, holds] of Object.entries(comparisons)) {
  handlebars.registerHelper(name, function compare(a, b, options) {
    return holds(a, b) ? options.fn(this) : options.inverse(this);
  });
}
handlebars.registerHelper("length", (value) => value?.length ?? 0);
handlebars.registerHelper("insert", (value, fallback) =>
  value || (typeof fallback === "string" ? fallback.replace(/^default=/, "") : ""),
);

// Postrider keeps the lines of section tags in HTML, where they make no difference (docs/decisions/0192).
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const { source, model, html } = JSON.parse(line);
  let answer;
  try {
    answer = { text: handlebars.compile(source, { noEscape: !html, ignoreStandalone: html })(model) };
  } catch (error) {
    answer = { error: error.message };
  }
  console.log(JSON.stringify(answer));
});
