// Sends a message by Nodemailer. Arguments: port, API key, mechanism and subject.
const nodemailer = require("nodemailer");

const [port, key, authMethod, subject] = process.argv.slice(2);
nodemailer
  .createTransport({ host: "127.0.0.1", port: Number(port), authMethod, auth: { user: "postrider", pass: key } })
  .sendMail({ from: "hi@alice.example", to: "ada@example.com", subject, text: "It works." })
  .catch((error) => { console.error(error); process.exit(1); });
