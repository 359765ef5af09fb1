from emails.states import TRANSITIONS, EmailStatus

SPECIFIED = {
    "scheduled": {"queued", "cancelled"},
    "queued": {"sent", "bounced", "failed", "opened", "clicked", "cancelled"},
    "sent": {"delivered", "bounced", "failed", "opened", "clicked"},
    "delivered": {"bounced", "opened", "clicked"},
    "opened": {"clicked"},
}


def test_the_transitions_match_the_specification():
    moves = {(source.value, target.value) for target, row in TRANSITIONS.items() for source in row.sources}
    assert moves == {(source, target) for source, targets in SPECIFIED.items() for target in targets}


def test_every_status_has_a_precedence():
    assert set(TRANSITIONS) == set(EmailStatus)
