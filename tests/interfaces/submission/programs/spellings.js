// Sends messages by Nodemailer whose names need quotes, with a field that occurs twice. Arguments: port and API key.
const nodemailer = require("nodemailer");

const [port, key] = process.argv.slice(2);
const transport = nodemailer.createTransport({
  host: "127.0.0.1", port: Number(port), auth: { user: "postrider", pass: key },
});
const names = ["[Demo] Alerts", "Demo, Inc", "Demo @ Home", "Demo: Alerts", "hi@alice.example", "Zoë, Inc"];
const message = (name) => ({
  from: { name, address: "hi@alice.example" }, to: [{ name, address: "ada@example.com" }], subject: name, text: "Hi",
  headers: { "X-Virus-Scanned": ["a", "b"] },
});
// As other programs write it: the header is not composed by Nodemailer.
const raw = (name) => ({
  envelope: { from: "hi@alice.example", to: "ada@example.com" },
  raw: `From: ${name} <hi@alice.example>\r\nTo: ${name} <ada@example.com>,\r\nSubject: ${name}\r\n\r\nHi\r\n`,
});

(async () => {
  for (const name of names) await transport.sendMail(message(name));
  for (const name of names) await transport.sendMail(raw(name));
})().catch((error) => { console.error(error); process.exit(1); });
