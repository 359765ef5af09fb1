// The first example of Postmark's Node library, with another base URL and key. Environment: URL, KEY, TO.
import postmark from "postmark";

const { host } = new URL(process.env.URL);
const client = new postmark.ServerClient(process.env.KEY, { requestHost: `${host}/compat/postmark`, useHttps: false });

const response = await client.sendEmail({
  From: "hello@demo.example",
  To: process.env.TO,
  ReplyTo: "replies@demo.example",
  Subject: "hello world",
  HtmlBody: "<strong>it works!</strong>",
  TextBody: "it works!",
  MessageStream: "outbound",
});
console.log(response.MessageID);
