"""django-post-office by its own book: emails stored, then `send_queued_mail` with its defaults.

Run by the benchmark with the interpreter of an environment of its own:
    send_queued.py DATABASE_URL SMTP_PORT COUNT HTML_FILE TEXT_FILE
It prints the seconds that sending took.
"""

import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.management import call_command

MANY = 500


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
    # Its models can be imported only now.
    from post_office import mail  # type: ignore[import-not-found]  # noqa: PLC0415
    from post_office.models import STATUS, Email  # type: ignore[import-not-found]  # noqa: PLC0415

    html, text = Path(html_file).read_text(encoding="utf-8"), Path(text_file).read_text(encoding="utf-8")
    for start in range(0, int(count), MANY):
        mail.send_many(
            [
                {
                    "recipients": [f"user{number}@example.com"],
                    "sender": "hello@demo.example",
                    "subject": f"Your receipt {number}",
                    "message": text,
                    "html_message": html,
                }
                for number in range(start, min(start + MANY, int(count)))
            ]
        )
    started = time.perf_counter()
    call_command("send_queued_mail")
    seconds = time.perf_counter() - started
    assert Email.objects.filter(status=STATUS.sent).count() == int(count)
    print(seconds)


if __name__ == "__main__":
    main()
