"""API errors of receiving."""

from typing import ClassVar

from core.api.errors import Member, Problem


class NotBlocked(Problem):
    """The received email is not blocked, so there is nothing to bypass.

    Only emails with the status `blocked` can be published by a bypass.
    """

    status, code, title = 409, "not_blocked", "Not blocked"
    example = "This email is processed, not blocked."
    added_members: ClassVar = {"emailStatus": Member("The status of the received email.", "processed")}


class NotPublished(Problem):
    """The received email has no event yet, so nothing can be delivered again.

    An email is published when it has been read. A blocked one is published by `bypass`.
    """

    status, code, title = 409, "not_published", "Not published"
    example = "This email is stored and was not published yet."
    added_members: ClassVar = {"emailStatus": Member("The status of the received email.", "stored")}


class NotUnreadable(Problem):
    """The message of this received email was read, or will be for the first time, so it is not reread.

    Only a message that could not be read to its end is: its email is `unreadable`, `blocked`, or was released.
    """

    status, code, title = 409, "not_unreadable", "Not unreadable"
    example = "This email is processed, and its message was read or will be read for the first time."
    added_members: ClassVar = {"emailStatus": Member("The status of the received email.", "processed")}


class RereadTooSoon(Problem):
    """The message was reread within the last hour and could not be read again.

    Wait for the number of seconds in `Retry-After`; it will be readable only if the service has changed since.
    """

    status, code, title = 409, "reread_too_soon", "Reread too soon"
    example = "The message of this email was reread within the last hour. Try again in 3540 s; see Retry-After."
    header_names = ("Retry-After",)


class NotForwarded(Problem):
    """The received email is not forwarded, since a forward could cause a loop or spread spam.

    `reason` is `not_processed`, `unreadable` (released before it was read), `null_sender`, `automatic`, `forwarded` (it
    is a forward itself), `spam`, `too_large`, or `own_domain` for a target that this service receives.
    """

    status, code, title = 409, "not_forwarded", "Not forwarded"
    example = "This email is not forwarded: automatic."
    added_members: ClassVar = {"reason": Member("Why it is not forwarded.", "automatic")}


class TestKeyRequired(Problem):
    """Only a test key can simulate a received email.

    Create a key with `test`, which sees simulated emails only.
    """

    __test__ = False  # not a test of pytest

    status, code, title = 403, "test_key_required", "Test key required"
    example = "Received emails can be simulated with a test key only. Others arrive over SMTP."


class RecipientRefused(Problem):
    """The mail server would refuse this recipient; `reply` is its SMTP reply.

    `POST /v1/inbound/routes/match` shows which route decides.
    """

    status, code, title = 422, "recipient_refused", "Recipient refused"
    example = "The mail server refuses hello@in.demo.example: 550 5.1.1 No such address"
    added_members: ClassVar = {"reply": Member("The reply of the mail server.", "550 5.1.1 No such address")}
