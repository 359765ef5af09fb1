"""Many streams with long names in Chromium."""

import pytest

from streams.models import Stream
from streams.services import create_stream
from suppressions.services import suppress_address
from tests.conftest import make_account
from tests.console.dashboard.axe import page_problems
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.conftest import make_email

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]


def test_twenty_streams_with_long_names_fit_every_screen(look):
    account = make_account("alice")
    for number in range(19):
        name = ("Wöchentliche Nachrichten für Freunde des Gartens " * 3 if number % 2 else "W" * 100)[:100]
        create_stream(account.workspace, slug=f"stream-{number}", name=name, kind="bulk")
    email = make_email(account.workspace, stream="stream-1")
    suppress_address(account.workspace, address="ada@example.com", reason="unsubscribe", stream="stream-0")
    sign_in(look, account.owner.email)
    problems = []
    stream = Stream.objects.get(slug="stream-1").id
    for path in ("", "emails/", f"emails/{email.id}/", "suppressions/", "suppressions/add/", "keys/add/", "streams/",
                 f"streams/{stream}/", f"streams/{stream}/archive/"):  # fmt: skip
        look.go(f"/dashboard/{path}?stream=stream-1")
        problems += page_problems(look, f"streams-{path.replace('/', '-')}")
    assert problems == []
    assert not look.complaints
