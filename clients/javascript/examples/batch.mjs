// Create a template and send a batch. Set POSTRIDER_URL, POSTRIDER_API_KEY and FROM in the environment.
import { Postrider } from "postrider";

const postrider = new Postrider();

const template = await postrider.templates.create({
  name: "Welcome",
  subject: "Welcome, {{name}}",
  htmlContent: "<p>Hello {{name}}!</p>",
});
const { queued, rejected } = await postrider.emails.batch({
  from: process.env.FROM,
  templateId: template.id,
  recipients: ["Ada", "Grace"].map((name) => ({
    to: `delivered+${name}@simulator.example`,
    templateData: { name },
  })),
  tags: ["welcome"],
});
for await (const email of postrider.emails.list({ tag: "welcome" })) console.log(email.to, email.status);
console.log(`${queued} accepted, ${rejected.length} rejected; done`);
await postrider.templates.delete(template.id);
