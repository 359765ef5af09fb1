"""Code that sends an email with a new API key, in several languages, for the page that shows the key."""

import json
from string import Template

from django.conf import settings

from dashboard.ui.smtp_settings import smtp_sample_values
from documentation.page_samples import CodeSample

CURL = Template("""curl $url/v1/emails/send \\
  -H "Authorization: Bearer $key" \\
  -H "Content-Type: application/json" \\
  -d '$body'
""")
JAVASCRIPT = Template("""const response = await fetch("$url/v1/emails/send", {
  method: "POST",
  headers: {
    Authorization: "Bearer $key",
    "Content-Type": "application/json",
  },
  body: JSON.stringify($javascript_body),
});
console.log(await response.json());
""")
PYTHON = Template("""import json
import urllib.request

request = urllib.request.Request(
    "$url/v1/emails/send",
    headers={"Authorization": "Bearer $key", "Content-Type": "application/json"},
    data=json.dumps($python_body).encode(),
)
with urllib.request.urlopen(request) as response:
    print(json.load(response))
""")
DJANGO = Template("""# settings.py
EMAIL_HOST = "$host"
EMAIL_PORT = $port
EMAIL_USE_TLS = $has_tls
EMAIL_HOST_USER = "postrider"
EMAIL_HOST_PASSWORD = "$key"

# anywhere
from django.core.mail import send_mail

send_mail("Hello from Postrider", "It works", "$sender", ["$recipient"])
""")
SMTP = Template("""curl --url smtp://$host:$port$tls_option \\
  --user "postrider:$key" \\
  --mail-from $sender --mail-rcpt $recipient \\
  --crlf --upload-file - <<'END'
From: $sender
To: $recipient
Subject: Hello from Postrider

It works
END
""")
READING = Template("""curl $url/v1/emails \\
  -H "Authorization: Bearer $key"
""")
SENDING_SAMPLES = {"curl": CURL, "JavaScript": JAVASCRIPT, "Python": PYTHON, "Django": DJANGO, "SMTP": SMTP}
READING_SAMPLES = {"curl": READING}
RECIPIENT = "ada@example.com"


def key_samples(key: str, *, domain: str, may_send: bool) -> list[CodeSample]:
    """Return samples with a key in them. domain: the domain of the sender."""
    values = _values(key, sender=f"hello@{domain}")
    samples = SENDING_SAMPLES if may_send else READING_SAMPLES
    return [CodeSample(language, template.substitute(values)) for language, template in samples.items()]


def _values(key: str, *, sender: str) -> dict[str, object]:
    fields = {"from": sender, "to": RECIPIENT, "subject": "Hello from Postrider", "html": "<h1>It works</h1>"}
    return {
        "key": key,
        "url": settings.PUBLIC_URL,
        "body": json.dumps(fields, indent=2),
        "javascript_body": json.dumps(fields, indent=2).replace("\n", "\n  "),
        "python_body": json.dumps(fields, indent=4).replace("\n", "\n    "),
        **smtp_sample_values(),
        "sender": sender,
        "recipient": RECIPIENT,
    }
