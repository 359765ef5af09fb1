"""Dialects: the requests that create a template and send an email with it, as the client of each provider does."""

import json
import time
import urllib.error
import urllib.request
from dataclasses import dataclass
from typing import Any

from tools.public_templates.samples import Sample

SENDER = "hello@demo.example"


class RequestRefused(Exception):
    """Raised for a response that is an error, with its body."""


@dataclass(frozen=True)
class Service:
    """A running service with an API key."""

    url: str
    key: str

    def stop_tracking(self) -> None:
        """Send emails without tracking links and pixels from now on."""
        self.call("PATCH", "v1/streams/main", {"trackOpens": False, "trackClicks": False})

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """Return the body of the response; wait while the rate limit asks for it. Raises RequestRefused."""
        headers = {
            "Authorization": f"Bearer {self.key}",
            "X-Postmark-Server-Token": self.key,
            "Content-Type": "application/json",
        }
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.url}/{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            text = error.read().decode()
            if error.code != 429:
                raise RequestRefused(f"{method} {path}: {error.code} {text[:500]}") from error
            time.sleep(float(error.headers.get("Retry-After") or 1))
            return self.call(method, path, body)


def send_with_postmark(service: Service, sample: Sample, recipient: str) -> list[str]:
    """Create a template, with its layout if it has one, and send it; return the paths of both."""
    path = "compat/postmark/templates"
    body = {"Name": sample.name[-100:], "Subject": sample.subject, "HtmlBody": sample.html, "TextBody": sample.text}
    layouts = []
    if sample.layout:
        html, text = sample.layout
        frame = {"Name": "Layout", "TemplateType": "Layout", "HtmlBody": html, "TextBody": text}
        layout = service.call("POST", path, frame)
        layouts, body = [f"{path}/{layout['TemplateId']}"], {**body, "LayoutTemplate": layout["Alias"]}
    template = service.call("POST", path, body)["TemplateId"]
    message = {"From": SENDER, "To": recipient, "TemplateId": template, "TemplateModel": sample.model}
    service.call("POST", "compat/postmark/email/withTemplate", message)
    return [f"{path}/{template}", *layouts]


def send_with_postrider(service: Service, sample: Sample, recipient: str) -> list[str]:
    """Create a template with `/v1` and send it; return its path."""
    body = {"name": sample.name[-100:], "subject": sample.subject, "htmlContent": sample.html}
    template = service.call("POST", "v1/templates", {**body, "textContent": sample.text})["id"]
    mail = {"from": SENDER, "to": recipient, "templateId": template, "templateData": sample.model}
    service.call("POST", "v1/emails/send", mail)
    return [f"v1/templates/{template}"]


def send_with_sendgrid(service: Service, sample: Sample, recipient: str) -> list[str]:
    """Create a template and its version and send it; return the path of the template."""
    path = "compat/sendgrid/v3/templates"
    template = service.call("POST", path, {"name": sample.name[-100:], "generation": "dynamic"})["id"]
    parts = {"subject": sample.subject, "html_content": sample.html, "plain_content": sample.text}
    service.call("POST", f"{path}/{template}/versions", {"name": "1", "active": 1, **parts})
    to = {"to": [{"email": recipient}], "dynamic_template_data": sample.model}
    mail = {"from": {"email": SENDER}, "personalizations": [to], "template_id": template}
    service.call("POST", "compat/sendgrid/v3/mail/send", mail)
    return [f"{path}/{template}"]


def send_with_resend(service: Service, sample: Sample, recipient: str) -> list[str]:
    """Create a template, publish it and send it; return the path of the template."""
    variables = [{"key": key, "type": "string"} for key in sample.model]
    body = {"name": sample.name[-100:], "subject": sample.subject, "html": sample.html, "text": sample.text}
    path = "compat/resend/templates"
    template = service.call("POST", path, {**body, "variables": variables})["id"]
    service.call("POST", f"{path}/{template}/publish")
    used = {"id": template, "variables": sample.model}
    service.call("POST", "compat/resend/emails", {"from": SENDER, "to": [recipient], "template": used})
    return [f"{path}/{template}"]
