// The first example of Resend's Node library, with another base URL and key. Environment: URL, KEY, TO.
import { Resend } from "resend";

const resend = new Resend(process.env.KEY, { baseUrl: `${process.env.URL}/compat/resend` });

const { data, error } = await resend.emails.send({
  from: "hello@demo.example",
  to: process.env.TO,
  replyTo: "replies@demo.example",
  subject: "hello world",
  html: "<strong>it works!</strong>",
});
if (error) throw new Error(error.message);
console.log(data.id);
