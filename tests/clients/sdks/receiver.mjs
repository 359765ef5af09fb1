// A receiver of webhooks on this machine, which keeps the requests that it gets.
import { createServer } from "node:http";

export async function startReceiver() {
  const requests = [];
  const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    requests.push({ headers: request.headers, body: Buffer.concat(chunks).toString() });
    response.end("ok");
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return { url: `http://127.0.0.1:${server.address().port}/`, requests, stop: () => server.close() };
}

// Returns the first request whose parsed body fulfils the condition. Throws after a minute without one.
export async function received({ requests }, condition) {
  for (let left = 240; left; left--) {
    const found = requests.find(({ body }) => condition(JSON.parse(body)));
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 250));
  }
  throw new Error(`No such request within a minute: ${JSON.stringify(requests)}`);
}
