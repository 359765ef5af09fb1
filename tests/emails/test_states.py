import pytest

from emails.states import PRECEDENCE, TRANSITIONS, EmailStatus, source_statuses

SPECIFIED = {
    "scheduled": {"queued", "cancelled"},
    "queued": {"sent", "bounced", "failed", "opened", "clicked"},
    "sent": {"delivered", "bounced", "failed", "opened", "clicked"},
    "delivered": {"bounced", "opened", "clicked"},
    "opened": {"clicked"},
}


def test_the_transitions_match_the_specification():
    assert {
        source.value: {target.value for target in targets} for source, targets in TRANSITIONS.items() if targets
    } == SPECIFIED


@pytest.mark.parametrize("status", EmailStatus)
def test_source_statuses_invert_the_transitions(status):
    assert set(source_statuses(status)) == {source for source, targets in SPECIFIED.items() if status in targets}


def test_every_status_has_a_precedence():
    assert set(PRECEDENCE) == set(EmailStatus)
