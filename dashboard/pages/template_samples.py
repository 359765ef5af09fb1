"""Code that sends an email from a template, in several languages, for the template editor."""

import json
from string import Template as Text
from typing import Any

from django.conf import settings

from api.errors import InvalidJson
from api.parser import parse_object
from dashboard.pages.template_tests import default_sender
from dashboard.ui.smtp_settings import smtp_sample_values
from documentation.page_samples import CodeSample
from templates_app.models import Template

CURL = Text("""curl $url/v1/emails/send \\
  -H "Authorization: Bearer $$POSTRIDER_API_KEY" \\
  -H "Content-Type: application/json" \\
  --data-binary @- <<'END'
$body
END
""")
JAVASCRIPT = Text("""const response = await fetch("$url/v1/emails/send", {
  method: "POST",
  headers: {
    Authorization: `Bearer $${process.env.POSTRIDER_API_KEY}`,
    "Content-Type": "application/json",
  },
  body: JSON.stringify($body),
});
console.log(await response.json());
""")
PYTHON = Text('''import json
import os
import urllib.request

body = json.loads(r"""
$body
""")
request = urllib.request.Request(
    "$url/v1/emails/send",
    headers={
        "Authorization": f"Bearer {os.environ['POSTRIDER_API_KEY']}",
        "Content-Type": "application/json",
    },
    data=json.dumps(body).encode(),
)
with urllib.request.urlopen(request) as response:
    print(json.load(response))
''')
SMTP = Text("""curl --url smtp://$host:$port$tls_option \\
  --user "postrider:$$POSTRIDER_API_KEY" \\
  --mail-from $sender --mail-rcpt $recipient \\
  --crlf --upload-file - <<'END'
From: $sender
To: $recipient
X-Postrider-Template: $template
X-Postrider-Template-Data: $header_data

END
""")
LANGUAGES = {"curl": CURL, "JavaScript": JAVASCRIPT, "Python": PYTHON, "SMTP": SMTP}
RECIPIENT = "ada@example.com"


def template_samples(template: Template, *, data: str) -> list[CodeSample]:
    """Return samples with the alias or id of the template. data: JSON text; invalid data is left out."""
    values = _values(template, _object(data))
    return [CodeSample(language, text.substitute(values)) for language, text in LANGUAGES.items()]


def _values(template: Template, data: dict[str, Any]) -> dict[str, object]:
    reference, sender = template.alias or template.id, default_sender(template.workspace)
    body = {"from": sender, "to": RECIPIENT, "templateId": reference, "templateData": data}
    return {
        "url": settings.PUBLIC_URL,
        **smtp_sample_values(),
        "sender": sender,
        "recipient": RECIPIENT,
        "template": reference,
        # ASCII, because headers need it. JSON never has three quotes in a row, which would end the text in Python.
        "body": json.dumps(body, indent=2),
        # A header of several lines.
        "header_data": json.dumps(data, indent=1).replace("\n", "\n "),
    }


def _object(text: str) -> dict[str, Any]:
    try:
        return parse_object((text.strip() or "{}").encode("utf-8", "replace"))
    except InvalidJson:
        return {}
