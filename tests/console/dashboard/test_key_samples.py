"""The code shown beside a new API key, executed against the running service."""

import pytest

from emails.models import Email, Entrance
from tests.conftest import make_account, make_domain
from tests.console.dashboard.conftest import signed_in
from tests.console.dashboard.sample_programs import run_sample, wait_for_the_end_of_requests
from tests.interfaces.submission.fixtures import run_submission

pytestmark = [pytest.mark.full, pytest.mark.django_db(transaction=True)]


def test_sends_an_email(live_server, settings):
    settings.PUBLIC_URL = live_server.url
    account = make_account("alice")
    make_domain(account.workspace, "alice.example")
    with run_submission(settings):
        page = signed_in(account.owner).post("/dashboard/keys/add/", {"name": "Shop", "scope": "sending_access"})
        samples = page.context["samples"]
        assert [sample.label for sample in samples] == ["curl", "JavaScript", "Python", "Django", "SMTP"]
        for sample in samples:
            done = run_sample(sample.label, sample.text)
            assert done.returncode == 0, (sample.label, done.stderr)
            email = Email.objects.latest("created_at")
            entrance = Entrance.SMTP if sample.label in {"Django", "SMTP"} else Entrance.API
            assert (email.sender, email.to, email.subject, email.entrance) == (
                "hello@alice.example", ["ada@example.com"], "Hello from Postrider", entrance,
            ), sample.label  # fmt: skip
    wait_for_the_end_of_requests()
    assert Email.objects.count() == len(samples)
