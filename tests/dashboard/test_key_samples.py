"""The code shown beside a new API key, executed against the running service."""

import pytest

from emails.models import Email, Entrance
from tests.conftest import make_account, make_domain
from tests.dashboard.conftest import signed_in
from tests.dashboard.sample_programs import run_sample, wait_for_the_end_of_requests
from tests.submission.fixtures import run_submission

pytestmark = [pytest.mark.full, pytest.mark.django_db(transaction=True)]


@pytest.mark.parametrize("language", ["curl", "JavaScript", "Python", "Django", "SMTP"])
def test_sends_an_email(live_server, settings, language):
    settings.PUBLIC_URL = live_server.url
    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    with run_submission(settings):
        page = signed_in(account.owner).post("/dashboard/keys/add/", {"name": "Shop", "scope": "sending_access"})
        code = {one.label: one.text for one in page.context["samples"]}[language]
        done = run_sample(language, code)
    wait_for_the_end_of_requests()
    assert done.returncode == 0, done.stderr
    email = Email.objects.get()
    assert (email.sender, email.to, email.subject) == (
        "hello@alice.example",
        ["ada@example.com"],
        "Hello from Postrider",
    )
    assert email.entrance == (Entrance.SMTP if language in {"Django", "SMTP"} else Entrance.API)
