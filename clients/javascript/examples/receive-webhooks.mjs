// Receive webhook events and verify them. This example creates, tests and deletes its webhook.
import { createServer } from "node:http";
import { Postrider, WebhookVerificationError } from "postrider";

const postrider = new Postrider();
let secret;

const server = createServer(async (request, response) => {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    // The signature covers the raw bytes; parsed JSON cannot be verified.
    const event = await postrider.webhooks.verify(Buffer.concat(chunks), request.headers, secret);
    response.writeHead(200).end();
    console.log(`${event.event}: ${event.data.to}; done`);
    await postrider.webhooks.delete(webhook.id);
    server.close();
  } catch (error) {
    if (!(error instanceof WebhookVerificationError)) throw error;
    response.writeHead(400).end();
  }
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

const url = `http://127.0.0.1:${server.address().port}/`;
const webhook = await postrider.webhooks.create({ url, events: ["delivered", "bounced"] });
secret = webhook.secret;
await postrider.webhooks.test(webhook.id);
