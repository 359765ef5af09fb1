"""The first example of Resend's Python library, with another base URL and key. Environment: URL, KEY, TO."""

import os

import resend

resend.api_url = f"{os.environ['URL']}/compat/resend"
resend.api_key = os.environ["KEY"]

params: resend.Emails.SendParams = {
    "from": "hello@demo.example",
    "to": [os.environ["TO"]],
    "subject": "hello world",
    "html": "<strong>it works!</strong>",
    "reply_to": "replies@demo.example",
    "headers": {"X-Entity-Ref-ID": "123456789"},
    "tags": [{"name": "tag1", "value": "tag1value"}, {"name": "tag2", "value": "tag2value"}],
}
email = resend.Emails.send(params)
print(email["id"])
