"""Code that sends an email, in several languages, for the pages of API keys and of templates."""

import json
from string import Template as Text
from typing import Any

from django.conf import settings

from console.dashboard.pages.templates.testing import default_sender
from console.dashboard.ui.smtp_settings import smtp_sample_values
from console.documentation.code_samples import CodeSample, ExampleRequest, code_samples, curl
from core.api.errors import InvalidJson
from core.api.parser import parse_object
from templates_app.models import Template

LANGUAGES = {"curl", "JavaScript", "Python"}
DJANGO = Text("""# settings.py
EMAIL_HOST = "$host"
EMAIL_PORT = $port
EMAIL_USE_TLS = $has_tls
EMAIL_HOST_USER = "postrider"
EMAIL_HOST_PASSWORD = "$key"

# anywhere
from django.core.mail import send_mail

send_mail("Hello from Postrider", "It works", "$sender", ["$recipient"])
""")
SMTP = Text("""curl --url smtp://$host:$port$tls_option \\
  --user "postrider:$key" \\
  --mail-from $sender --mail-rcpt $recipient \\
  --crlf --upload-file - <<'END'
From: $sender
To: $recipient
$message
END
""")
RECIPIENT = "ada@example.com"


def key_samples(key: str, *, domain: str, may_send: bool) -> list[CodeSample]:
    """Return samples with a key in them. domain: the domain of the sender."""
    if not may_send:
        return [CodeSample("curl", curl(ExampleRequest("GET", f"{settings.PUBLIC_URL}/v1/emails", key=key)))]
    sender, text = f"hello@{domain}", "Subject: Hello from Postrider\n\nIt works"
    fields = {"subject": "Hello from Postrider", "html": "<h1>It works</h1>"}
    return [
        *_api_samples(fields, sender=sender, key=key),
        CodeSample("Django", DJANGO.substitute(_smtp_values(sender, key=key))),
        CodeSample("SMTP", SMTP.substitute(_smtp_values(sender, key=key), message=text)),
    ]


def template_samples(template: Template, *, data: str) -> list[CodeSample]:
    """Return samples with the alias or id of the template. data: JSON text; invalid data is left out."""
    reference, sender, values = template.alias or template.id, default_sender(template.workspace), _object(data)
    # ASCII, on several lines: a header.
    header = json.dumps(values, indent=1).replace("\n", "\n ")
    message = f"X-Postrider-Template: {reference}\nX-Postrider-Template-Data: {header}\n"
    return [
        *_api_samples({"templateId": reference, "templateData": values}, sender=sender),
        CodeSample("SMTP", SMTP.substitute(_smtp_values(sender, key="$POSTRIDER_API_KEY"), message=message)),
    ]


def _api_samples(fields: dict[str, Any], *, sender: str, key: str = "") -> list[CodeSample]:
    body = {"from": sender, "to": RECIPIENT, **fields}
    request = ExampleRequest("POST", f"{settings.PUBLIC_URL}/v1/emails/send", body, key=key)
    return [sample for sample in code_samples(request) if sample.label in LANGUAGES]


def _smtp_values(sender: str, *, key: str) -> dict[str, object]:
    return {**smtp_sample_values(), "key": key, "sender": sender, "recipient": RECIPIENT}


def _object(text: str) -> dict[str, Any]:
    try:
        return parse_object((text.strip() or "{}").encode("utf-8", "replace"))
    except InvalidJson:
        return {}
