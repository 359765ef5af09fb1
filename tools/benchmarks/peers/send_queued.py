"""django-post-office as documented: emails are stored, then sent by `send_queued_mail`.

The benchmark runs this script with the interpreter of a separate virtual environment, with its options as JSON:
    send_queued.py '{"database": URL, "smtp_port": 25, "count": 100, "directory": "/…", "processes": 2, …}'
It prints a line when all emails are stored, sends them after a line of input, and exits.
"""

import json
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import django
import dkim
from django.conf import settings
from django.core.mail.backends.smtp import EmailBackend
from django.core.management import call_command

BATCH_SIZE = 500


class SigningBackend(EmailBackend):
    """Django's SMTP backend with a signature by dkimpy, for sending without a mail server that signs."""

    key = b""

    def _send(self, email_message: Any) -> bool:
        message = email_message.message().as_bytes(linesep="\r\n")
        names = [b"from", b"to", b"subject", b"date", b"message-id", b"mime-version", b"content-type"]
        signature = dkim.sign(
            message, b"peer", b"demo.example", self.key, canonicalize=(b"relaxed", b"relaxed"), include_headers=names
        )
        self.connection.sendmail(email_message.from_email, email_message.recipients(), signature + message)  # type: ignore[union-attr]
        return True


def configure(options: dict[str, Any]) -> None:
    url = urlsplit(options["database"])
    settings.configure(
        SECRET_KEY="benchmark",  # noqa: S106 - signs nothing
        INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "post_office"],
        DATABASES={
            "default": {
                "ENGINE": "django.db.backends.postgresql",
                "NAME": url.path[1:],
                "USER": url.username,
                "PASSWORD": url.password or "",
                "HOST": url.hostname,
                "PORT": url.port,
            }
        },
        TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
        EMAIL_BACKEND="post_office.EmailBackend",
        EMAIL_HOST="127.0.0.1",
        EMAIL_PORT=options["smtp_port"],
        POST_OFFICE={
            "BACKENDS": {
                "default": "__main__.SigningBackend"
                if options["signs"]
                else "django.core.mail.backends.smtp.EmailBackend"
            },
            "THREADS_PER_PROCESS": options["threads"],
            "BATCH_SIZE": BATCH_SIZE,
        },
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
    )
    django.setup()


def main() -> None:
    options = json.loads(sys.argv[1])
    configure(options)
    call_command("migrate", verbosity=0)
    # Its models can be imported only after django.setup().
    from post_office.models import STATUS, Email  # type: ignore[import-not-found]  # noqa: PLC0415

    directory = Path(options["directory"])
    SigningBackend.key = (directory / "key.pem").read_bytes()
    store_emails(directory, count=options["count"])
    print("stored", flush=True)
    sys.stdin.readline()
    call_command("send_queued_mail", processes=options["processes"])
    assert Email.objects.filter(status=STATUS.sent).count() == options["count"]


def store_emails(directory: Path, *, count: int) -> None:
    from post_office import mail  # type: ignore[import-not-found]  # noqa: PLC0415

    html, text = (directory / name for name in ("mail.html", "mail.txt"))
    content = {"message": text.read_text(encoding="utf-8"), "html_message": html.read_text(encoding="utf-8")}
    for start in range(0, count, BATCH_SIZE):
        mail.send_many(
            [
                {
                    "recipients": [f"user{number}@example.com"],
                    "sender": "hello@demo.example",
                    "subject": f"Your receipt {number}",
                    **content,
                }
                for number in range(start, min(start + BATCH_SIZE, count))
            ]
        )


if __name__ == "__main__":
    main()
