// Send an email with an attachment. Set POSTRIDER_URL, POSTRIDER_API_KEY and FROM in the environment.
import { Postrider, QuotaExceededError, RecipientSuppressedError } from "postrider";

const postrider = new Postrider();

try {
  const { id } = await postrider.emails.send({
    from: process.env.FROM,
    to: "delivered+example@simulator.example",
    subject: "Your invoice",
    html: "<p>Thank you! The invoice is attached.</p>",
    attachments: [{ filename: "invoice.txt", content: Buffer.from("1042: 42.00 EUR\n") }],
    tags: ["invoice"],
  });
  const { status } = await postrider.emails.get(id);
  console.log(`${id} is ${status}; done`);
} catch (error) {
  if (error instanceof RecipientSuppressedError) console.error("not sent to:", error.recipients);
  else if (error instanceof QuotaExceededError) console.error("quota exceeded until", error.resetsAt);
  else throw error;
}
