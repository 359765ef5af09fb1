"""The code shown beside a new API key, executed against the running service."""

import subprocess
import sys

import pytest

from emails.models import Email, Entrance
from tests.conftest import make_account, make_domain
from tests.dashboard.conftest import signed_in
from tests.standards.tools import program
from tests.submission.fixtures import run_submission

pytestmark = [pytest.mark.full, pytest.mark.django_db(transaction=True)]

# Runs the two halves of the Django sample: the settings, then the code.
RUN_DJANGO = """
import sys
from django.conf import settings
before, after = sys.argv[1].split("# anywhere")
values = {}
exec(before, values)
settings.configure(**{name: value for name, value in values.items() if name.isupper()})
exec(after)
"""


def command(language: str, code: str) -> list[str]:
    match language:
        case "JavaScript":
            return [program("node", package="nodejs"), "--input-type=module", "-e", code]
        case "Python":
            return [sys.executable, "-c", code]
        case "Django":
            return [sys.executable, "-c", RUN_DJANGO, code]
    return [program("bash", package="bash"), "-euc", code]


@pytest.mark.parametrize("language", ["curl", "JavaScript", "Python", "Django", "SMTP"])
def test_sends_an_email(live_server, settings, language):
    settings.PUBLIC_URL = live_server.url
    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    with run_submission(settings):
        page = signed_in(account.owner).post("/dashboard/keys/add/", {"name": "Shop", "scope": "sending_access"})
        code = {one.language: one.code for one in page.context["samples"]}[language]
        done = subprocess.run(command(language, code), check=False, capture_output=True, text=True, timeout=120)

    assert done.returncode == 0, done.stderr
    email = Email.objects.get()
    assert (email.sender, email.to, email.subject) == (
        "hello@alice.example",
        ["ada@example.com"],
        "Hello from Postrider",
    )
    assert email.entrance == (Entrance.SMTP if language in {"Django", "SMTP"} else Entrance.API)
