// Calls the routes of docs/frameworks/nextjs.md with the requests that Next.js passes to them. Arguments: a webhook body
// and its headers as JSON.
import { POST as order } from "./app/api/orders/route.mjs";
import { POST as events } from "./app/api/events/route.mjs";

const [, , body, headers] = process.argv;
const post = (content, fields = {}) => new Request("http://localhost/", { method: "POST", body: content, headers: fields });
const sent = async () => (await order(post(JSON.stringify({ number: 1042, to: "ada@example.com" })))).json();
const refused = await order(post(JSON.stringify({ number: 1, to: "nobody" })));
const results = {
  first: await sent(),
  second: await sent(),
  refused: [refused.status, await refused.json()],
  genuine: (await events(post(body, JSON.parse(headers)))).status,
  forged: (await events(post(`${body} `, JSON.parse(headers)))).status,
};
console.log(JSON.stringify(results));
