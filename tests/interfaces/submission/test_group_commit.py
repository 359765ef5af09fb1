"""Emails of a workspace that are ready at the same time: one statement accepts them, and each has its own reply."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest
from django.db import OperationalError, connection

from core.lib.email_addresses import parse_recipient
from core.workspaces.key_limits import NO_LIMITS, KeyLimits
from core.workspaces.models import ApiKey, Usage, Workspace
from emails.models import Email
from interfaces.submission.group_commit import GroupCommit
from interfaces.submission.services import read_submitted
from suppressions.services import suppress_address
from tests.interfaces.submission.fixtures import MESSAGE

pytestmark = pytest.mark.django_db(transaction=True)
SESSIONS = 12
ID = re.compile(r"2\.0\.0 Accepted as (\w+)$")


def submitted(number: int, to: str = "ada@example.com", sender: bytes = b"alice.example"):
    source = MESSAGE.replace(b"alice.example", sender).replace(b"Hello\r\n", b"Hello %d\r\n" % number, 1)
    return read_submitted(source, recipients=[parse_recipient(to)])


def accept_at_once(workspace, emails, *limits: KeyLimits) -> tuple[list[str], int]:
    """Accept emails that are ready at the same time; return the replies and the number of steps.

    limits: of the key of each email; by default of one key without limits.
    """
    keys = [ApiKey(workspace=workspace, restrictions=one.to_json()) for one in limits or [NO_LIMITS] * len(emails)]
    steps = []

    async def accept(executor):
        async def run(step):
            steps.append(step)
            return await asyncio.get_running_loop().run_in_executor(executor, step)

        group_commit = GroupCommit(run)
        return await asyncio.gather(*map(group_commit.accept, keys, emails))

    with ThreadPoolExecutor(1) as executor:
        replies = asyncio.run(accept(executor))
        executor.submit(close_connection).result()
    return replies, len(steps)


def close_connection() -> None:
    # Each thread has a separate one.
    connection.close()


def test_emails_that_are_ready_together_are_accepted_in_one_step(workspace):
    replies, steps = accept_at_once(workspace, [submitted(number) for number in range(SESSIONS)])
    ids = [ID.search(reply)[1] for reply in replies]
    assert steps == 1
    assert dict(Email.objects.values_list("id", "subject")) == {
        id_: f"Hello {number}" for number, id_ in enumerate(ids)
    }


def test_more_emails_than_a_group_holds_are_accepted_in_several(workspace):
    replies, steps = accept_at_once(workspace, [submitted(number) for number in range(51)])
    assert (steps, len({ID.search(reply)[1] for reply in replies}), Email.objects.count()) == (2, 51, 51)


def test_only_emails_whose_keys_have_the_same_limits_are_accepted_in_one_step(workspace):
    limits = [KeyLimits(domains=("shop.example",)), NO_LIMITS] * 3
    replies, steps = accept_at_once(workspace, [submitted(number) for number in range(6)], *limits)
    assert steps == 2
    assert [reply[:9] for reply in replies] == ["550 5.7.1", "250 2.0.0"] * 3
    assert Email.objects.count() == 3


def test_a_refused_email_does_not_matter_to_the_others(workspace):
    suppress_address(workspace, address="bob@example.com", reason="bounce")
    replies, _ = accept_at_once(
        workspace, [submitted(0), submitted(1, "bob@example.com"), submitted(2, sender=b"other.example"), submitted(3)]
    )
    assert [reply[:9] for reply in replies] == ["250 2.0.0", "550 5.7.1", "550 5.7.1", "250 2.0.0"]
    assert "suppression list" in replies[1]
    assert "other.example" in replies[2]
    assert set(Email.objects.values_list("subject", flat=True)) == {"Hello 0", "Hello 3"}


def test_a_quota_that_covers_some_emails_accepts_these(workspace):
    Workspace.objects.filter(id=workspace.id).update(plan="free")
    Usage.objects.create(workspace=workspace, month=datetime.now(UTC).date().replace(day=1), used=498)
    workspace.refresh_from_db()
    replies, _ = accept_at_once(workspace, [submitted(number) for number in range(4)])
    assert sorted(reply[:9] for reply in replies) == ["250 2.0.0"] * 2 + ["550 5.7.1"] * 2
    assert Email.objects.count() == 2


def test_a_lost_database_connection_is_a_temporary_error_for_all(workspace, monkeypatch):
    def fail(*_, **__):
        raise OperationalError("secret host")

    monkeypatch.setattr("interfaces.submission.services.accept_emails", fail)
    replies, _ = accept_at_once(workspace, [submitted(0), submitted(1)])
    assert replies == ["451 4.3.0 The database is unavailable; try again"] * 2
    assert not Email.objects.exists()


def test_each_session_gets_the_id_of_its_message(port):
    def submit(number):
        return [
            (port.submit(MESSAGE.replace(b"Subject: Hello", b"Subject: %d.%d" % (number, count)))[1], number, count)
            for count in range(4)
        ]

    with ThreadPoolExecutor(SESSIONS) as executor:
        accepted = [one for some in executor.map(submit, range(SESSIONS)) for one in some]
    subjects = {ID.search(reply)[1]: f"{number}.{count}" for reply, number, count in accepted}
    assert dict(Email.objects.values_list("id", "subject")) == subjects
    assert len(subjects) == 4 * SESSIONS
