import pytest

from emails.states import MOVES, PRECEDENCE, State, sources

CONTRACT = {
    "scheduled": {"queued", "cancelled"},
    "queued": {"sent", "bounced", "failed", "opened", "clicked"},
    "sent": {"delivered", "bounced", "failed", "opened", "clicked"},
    "delivered": {"bounced", "opened", "clicked"},
    "opened": {"clicked"},
}


def test_the_table_is_the_contracts():
    assert {
        source.value: {target.value for target in targets} for source, targets in MOVES.items() if targets
    } == CONTRACT


@pytest.mark.parametrize("state", State)
def test_sources_are_the_table_read_backwards(state):
    assert set(sources(state)) == {source for source, targets in CONTRACT.items() if state in targets}


def test_every_state_has_its_place_among_an_emails_recipients():
    assert set(PRECEDENCE) == set(State)
