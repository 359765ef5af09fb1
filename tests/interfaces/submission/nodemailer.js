// Sends five messages over a pool of two connections: every kind of content that Nodemailer has.
const nodemailer = require("nodemailer");

const [port, key] = process.argv.slice(2);
const transport = nodemailer.createTransport({
  host: "localhost", port: Number(port), pool: true, maxConnections: 2,
  tls: { rejectUnauthorized: false }, auth: { user: "postrider", pass: key },
});
const calendar = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nEND:VCALENDAR\r\n";
const message = (number) => ({
  from: "Zoë <hello@demo.example>", to: ["Ada <ada@example.com>", "bob@example.com"], cc: "carol@example.com",
  bcc: "eve@example.com", replyTo: "a@example.com, b@example.com", subject: `Nodemailer ${number} ✓`,
  text: "Grüße 🎉\n.leading dot\n" + "x".repeat(2000), html: '<p>Grüße <img src="cid:logo@app"></p>',
  attachments: [
    { filename: "Übersicht.pdf", content: Buffer.alloc(100000, number) },
    { filename: "logo.png", content: Buffer.from("89504e47", "hex"), cid: "logo@app" },
  ],
  icalEvent: { method: "REQUEST", content: calendar },
  headers: { "X-Shop": "1" }, dsn: { id: `n${number}`, return: "headers", notify: "never", recipient: "a@example.com" },
});

Promise.all([0, 1, 2, 3, 4].map((number) => transport.sendMail(message(number))))
  .then((results) => { console.log(JSON.stringify(results.map((result) => result.response))); transport.close(); })
  .catch((error) => { console.error(error); process.exit(1); });
