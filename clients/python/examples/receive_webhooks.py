"""Receive webhook events and verify them. This example creates, tests and deletes its webhook."""

from http.server import BaseHTTPRequestHandler, HTTPServer

from postrider_client import Postrider, WebhookVerificationError

client = Postrider()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        # The signature covers the raw bytes; parsed JSON cannot be verified.
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = client.webhooks.verify(body, self.headers, secret)
        except WebhookVerificationError:
            self.send_error(400)
            return
        self.send_response(200)
        self.end_headers()
        print(event.event, event.data["to"], "done")


server = HTTPServer(("127.0.0.1", 0), Receiver)
webhook = client.webhooks.create(url=f"http://127.0.0.1:{server.server_port}/", events=["delivered", "bounced"])
assert webhook.secret is not None, "the response of create contains the secret"
secret = webhook.secret
client.webhooks.test(webhook.id)
server.handle_request()
client.webhooks.delete(webhook.id)
