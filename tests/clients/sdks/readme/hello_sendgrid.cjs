// The first example of SendGrid's Node library, with another base URL and key. Environment: URL, KEY, TO.
const sgMail = require("@sendgrid/mail");

sgMail.setApiKey(process.env.KEY);
sgMail.client.setDefaultRequest("baseUrl", `${process.env.URL}/compat/sendgrid`);

const msg = {
  to: process.env.TO,
  from: "hello@demo.example",
  replyTo: "replies@demo.example",
  subject: "hello world",
  text: "it works!",
  html: "<strong>it works!</strong>",
};
sgMail.send(msg).then(
  ([response]) => console.log(response.headers["x-message-id"]),
  (error) => {
    console.error(error.response?.body ?? error);
    process.exit(1);
  },
);
