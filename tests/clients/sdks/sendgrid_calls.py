"""Lists the requests that the methods of SendGrid's Python library make; its other requests name their paths."""

import json
import sys

import python_http_client
from sendgrid import SendGridAPIClient

calls = []


def note(client, opener, request, timeout=None):
    calls.append(f"{request.get_method()} {request.selector}")
    raise ConnectionError


python_http_client.Client._make_request = note
try:
    SendGridAPIClient("SG.key", host="http://127.0.0.1").send({"from": {"email": "a@example.com"}})
except ConnectionError:
    sys.stdout.write(json.dumps(calls))
