"""The three backends of django-anymail against the compatibility endpoints. Environment: URL, KEY, RUN."""

import os
import warnings

import django
from django.conf import settings
from django.core.mail import EmailMultiAlternatives, get_connection

warnings.simplefilter("ignore")
URL, KEY, RUN = os.environ["URL"], os.environ["KEY"], os.environ["RUN"]
BACKENDS = {
    "resend": {"RESEND_API_URL": f"{URL}/compat/resend/", "RESEND_API_KEY": KEY},
    "postmark": {"POSTMARK_API_URL": f"{URL}/compat/postmark/", "POSTMARK_SERVER_TOKEN": KEY},
    "sendgrid": {"SENDGRID_API_URL": f"{URL}/compat/sendgrid/v3/", "SENDGRID_API_KEY": KEY},
}
settings.configure(ANYMAIL={name: value for options in BACKENDS.values() for name, value in options.items()})
django.setup()

for name in BACKENDS:
    message = EmailMultiAlternatives(
        "Hello",
        "In text",
        "Demo <hello@demo.example>",
        [f"any-{name}-{RUN}@example.com"],
        cc=["carol@example.com"],
        bcc=["dan@example.com"],
        reply_to=["one@demo.example", "two@demo.example"],
        headers={"X-A": "1"},
    )
    message.attach_alternative("<p>In HTML</p>", "text/html")
    message.attach("notes.txt", "Notes", "text/plain")
    message.tags, message.metadata = ["welcome"], {"order": "7"}
    message.connection = get_connection(f"anymail.backends.{name}.EmailBackend")
    assert message.send() == 1, name
    status = message.anymail_status
    assert status.status <= {"queued", "sent"}, (name, status)
    assert status.recipients[f"any-{name}-{RUN}@example.com"].message_id, name
