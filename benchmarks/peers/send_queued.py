"""django-post-office as documented: emails are stored, then sent by `send_queued_mail` with its defaults.

The benchmark runs this script with the interpreter of a separate virtual environment:
    send_queued.py DATABASE_URL SMTP_PORT COUNT HTML_FILE TEXT_FILE
It prints the seconds of sending.
"""

import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import call_command

BATCH_SIZE = 500


def configure(database_url: str, smtp_port: int) -> None:
    url = urlsplit(database_url)
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
        EMAIL_PORT=smtp_port,
        DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        USE_TZ=True,
    )
    django.setup()


def main() -> None:
    database_url, smtp_port, count, html_file, text_file = sys.argv[1:]
    configure(database_url, int(smtp_port))
    call_command("migrate", verbosity=0)
    # Its models can be imported only after django.setup().
    from post_office import mail  # type: ignore[import-not-found]  # noqa: PLC0415
    from post_office.models import STATUS, Email  # type: ignore[import-not-found]  # noqa: PLC0415

    html, text = Path(html_file).read_text(encoding="utf-8"), Path(text_file).read_text(encoding="utf-8")
    for start in range(0, int(count), BATCH_SIZE):
        mail.send_many(
            [
                {
                    "recipients": [f"user{number}@example.com"],
                    "sender": "hello@demo.example",
                    "subject": f"Your receipt {number}",
                    "message": text,
                    "html_message": html,
                }
                for number in range(start, min(start + BATCH_SIZE, int(count)))
            ]
        )
    started = time.perf_counter()
    call_command("send_queued_mail")
    seconds = time.perf_counter() - started
    assert Email.objects.filter(status=STATUS.sent).count() == int(count)
    print(seconds)


if __name__ == "__main__":
    main()
