"""django-anymail's inbound view for Resend, which fetches the message. Environment: URL, KEY, TEST_KEY, RUN."""

import json
import os
import queue
import threading
import urllib.request
from http.server import BaseHTTPRequestHandler, HTTPServer

import django
from django.conf import settings

URL, KEY, TEST_KEY, RUN = (os.environ[name] for name in ("URL", "KEY", "TEST_KEY", "RUN"))
settings.configure(ANYMAIL={}, ROOT_URLCONF=[], ALLOWED_HOSTS=["*"])
django.setup()

from anymail.webhooks.resend import ResendInboundWebhookView  # noqa: E402 - needs the settings
from django.test import RequestFactory  # noqa: E402 - needs the settings

posted = queue.Queue()


class Receiver(BaseHTTPRequestHandler):
    def do_POST(self):
        posted.put((dict(self.headers), self.rfile.read(int(self.headers["content-length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *args):
        pass


def call(path, key, body=None):
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    data = json.dumps(body).encode() if body else None
    with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers), timeout=30) as response:
        return json.load(response)


server = HTTPServer(("127.0.0.1", 0), Receiver)
threading.Thread(target=server.serve_forever, daemon=True).start()
hook = {"endpoint": f"http://127.0.0.1:{server.server_port}/", "events": ["email.received"]}
secret = call("/compat/resend/webhooks", KEY, hook)["signing_secret"]
recipient = call("/v1/inbound", KEY)["address"].replace("@", f"+any-{RUN}@")
raw = (
    f"From: =?utf-8?q?L=C3=B6velace=2C_Ada?= <ada@example.com>\r\nTo: {recipient}\r\nSubject: Received\r\n"
    "Content-Type: multipart/mixed; boundary=m\r\n\r\n--m\r\n\r\nHello\r\n"
    "--m\r\nContent-Type: application/pdf\r\nContent-Disposition: attachment; filename=a.pdf\r\n"
    "Content-Transfer-Encoding: base64\r\n\r\nAP8B\r\n--m--\r\n"
)
call("/v1/inbound/emails", TEST_KEY, {"recipient": recipient, "envelopeFrom": "ada@example.com", "raw": raw})
while True:
    headers, body = posted.get(timeout=60)
    if recipient in json.loads(body)["data"]["to"]:
        break
meta = {f"HTTP_{name.upper().replace('-', '_')}": value for name, value in headers.items()}
request = RequestFactory().post("/", body, "application/json", **meta)
view = ResendInboundWebhookView(api_key=KEY, api_url=f"{URL}/compat/resend/", inbound_secret=secret)
view.validate_request(request)
(event,) = view.parse_events(request)
message = event.message
assert (message.from_email.display_name, message.from_email.addr_spec) == ("Lövelace, Ada", "ada@example.com")
assert (message.subject, message.text.strip(), message.to[0].addr_spec) == ("Received", "Hello", recipient)
(attachment,) = message.attachments
assert (attachment.get_filename(), attachment.get_content_bytes()) == ("a.pdf", b"\x00\xff\x01")
