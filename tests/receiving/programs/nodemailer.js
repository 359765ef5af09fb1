// Delivers messages to a mail host; prints the reply to each, or the error's code and the reply in it.
const nodemailer = require("nodemailer");

const [port, ...names] = process.argv.slice(2);
const transport = nodemailer.createTransport({
  host: "localhost", port: Number(port), name: "nodemailer.example", requireTLS: true,
  tls: { rejectUnauthorized: false },
});
const file = { filename: "Übersicht.pdf", content: require("fs").readFileSync(0) };
const base = { from: "Zoë <zoe@nodemailer.example>", to: "support@demo.example", text: "Grüße 🎉\n.dot\n" };
const messages = {
  files: { ...base, subject: "Files by nodemailer", html: "<p>Grüße</p>", attachments: [file] },
  utf8: { ...base, from: "zoë@nodemailer.example", to: "grüße@demo.example", subject: "UTF-8 by nodemailer" },
  large: { ...base, subject: "Large by nodemailer", attachments: [{ filename: "a", content: Buffer.alloc(1200000) }] },
  unknown: { ...base, to: "nobody@demo.example", subject: "Unknown by nodemailer" },
};
const deliver = (message) => transport.sendMail(message)
  .then((result) => result.response).catch((error) => `${error.code} ${error.response || error.message}`);

(async () => {
  for (const name of names) console.log(await deliver(messages[name]));
  transport.close();
})();
