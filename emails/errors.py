"""Problems of the email endpoints."""

from typing import Any, ClassVar

from core.api.errors import Member, Problem, field_path


class InvalidIdempotencyKey(Problem):
    """The `Idempotency-Key` header is invalid, or differs from `idempotencyKey` in the body.

    Send 1 to 255 printable ASCII characters, in only one of the two places.
    """

    status, code, title = 400, "invalid_idempotency_key", "Invalid idempotency key"
    example = "The Idempotency-Key header and the idempotencyKey field differ. Send only one of them."


class IdempotencyKeyReuse(Problem):
    """The idempotency key was already used for a different request.

    Use a new key for each new email. To repeat a request, send the same body to the same path.
    """

    status, code, title = 409, "idempotency_key_reuse", "Idempotency key used before"
    example = "This idempotency key was used for a different request. Use a new key."


class IdempotencyInProgress(Problem):
    """Another request with this idempotency key is still in progress.

    Repeat it after the number of seconds in `Retry-After`: you receive the response to the first request.
    """

    status, code, title = 409, "idempotency_in_progress", "Request in progress"
    example = "A request with this idempotency key is still in progress. Retry later."
    header_names = ("Retry-After",)


class EmailAlreadySent(Problem):
    """The email has already been sent and cannot be cancelled.

    A sent email cannot be recalled.
    """

    status, code, title = 409, "email_already_sent", "Email already sent"
    example = "This email was already sent and cannot be cancelled."


class EmailNotCancellable(Problem):
    """The email is no longer scheduled: it is queued, bounced or failed.

    Only a scheduled email can be cancelled, until its scheduled time. While the operator has paused sending, a queued
    email can be cancelled if no delivery attempt was made.
    """

    status, code, title = 409, "email_not_cancellable", "Email not cancellable"
    example = "This email is queued. Only scheduled emails can be cancelled."


class EmailNotHeld(Problem):
    """The email does not wait for approval, or no longer.

    `decision` has the decision that was made: `approved`, `rejected`, `expired` after seven days, or `cancelled` by the
    sender. It is absent if the email never waited for approval. Only the first decision counts.
    """

    status, code, title = 409, "email_not_held", "Email not held"
    example = "ada@example.com rejected this email at 2026-11-20T09:12:31.000Z."
    added_members: ClassVar = {
        "decision": Member(
            "The decision that was made.",
            {
                "decision": Member("`approved`, `rejected`, `expired` or `cancelled`.", "rejected"),
                "by": Member(
                    "Who decided.",
                    {
                        "kind": Member("The kind of the approver: `person` or `key`.", "person"),
                        "name": Member("The address of the person, or the name of the key.", "ada@example.com"),
                    },
                    is_optional=True,
                ),
                "decidedAt": Member("The time of the decision.", "2026-11-20T09:12:31.000Z"),
                "reason": Member("The reason of a rejection.", "The price is wrong.", is_optional=True),
            },
            is_optional=True,
        ),
    }


class EmailNotScheduled(Problem):
    """The email is not scheduled, or no longer scheduled, and cannot be rescheduled.

    Send a new email, or resend this one.
    """

    status, code, title = 409, "email_not_scheduled", "Email not scheduled"
    example = "This email is no longer scheduled and cannot be rescheduled."


class ContentNotKept(Problem):
    """The content of the email is not kept, so that it cannot be sent again.

    The email is `sensitive`, or `contentRetention` of its stream has removed its content. Send a new email.
    """

    status, code, title = 409, "content_not_kept", "Content not kept"
    example = "The content of this email is not kept. Send a new email."

    def __init__(self, detail: str = example, **members: Any) -> None:
        super().__init__(detail, **members)


class RecipientNotAllowed(Problem):
    """The recipient rules of the workspace, or of the API key, do not allow a recipient.

    `recipients` lists each one with its `field`. Send to an allowed address, or let somebody who manages the workspace
    change `recipientRules`. A batch skips such recipients and fails only when none is left.
    """

    status, code, title = 403, "recipient_not_allowed", "Recipient not allowed"
    example = "The recipient rules do not allow eve@example.net."
    added_members: ClassVar = {
        "recipients": Member(
            "The recipients that are not allowed.",
            [{"email": Member("The address.", "eve@example.net"), "field": field_path("to[0]")}],
        )
    }


class RecipientCapped(Problem):
    """A recipient has got as many emails as a cap in `recipientRules` allows.

    Nothing was accepted. `recipients` lists each one with its `field` and the time in `retryAt` from which it may get
    an email again. Wait for the number of seconds in `Retry-After`, or send fewer emails. A batch skips such
    recipients and fails only when none is left.
    """

    status, code, title = 429, "recipient_capped", "Recipient capped"
    example = "ada@example.com has got as many emails as a cap allows, until 2026-11-20T09:12:44.102Z."
    header_names = ("Retry-After",)
    added_members: ClassVar = {
        "retryAt": Member("The time from which all of them may get an email.", "2026-11-20T09:12:44.102Z"),
        "recipients": Member(
            "The recipients that have got too many.",
            [
                {
                    "email": Member("The address.", "ada@example.com"),
                    "field": field_path("to[0]"),
                    "retryAt": Member("The time from which it may get an email.", "2026-11-20T09:12:44.102Z"),
                }
            ],
        ),
    }


class AttachmentsTooLarge(Problem):
    """The attachments exceed 10 MiB (10,485,760 bytes) in total after decoding.

    Send fewer or smaller files, or links to them.
    """

    status, code, title = 413, "attachments_too_large", "Attachments too large"
    example = "Attachments must not exceed 10,485,760 bytes in total after decoding."
    added_members: ClassVar = {"limit": Member("The largest total size, in bytes.", 10_485_760)}


class TooManyAttachments(Problem):
    """The email has more than 10 attachments.

    Send fewer files, or combine them into one archive.
    """

    status, code, title = 422, "too_many_attachments", "Too many attachments"
    example = "At most 10 attachments are allowed; this email has 12."
    added_members: ClassVar = {"limit": Member("The largest number of attachments.", 10)}


class TooManyRecipients(Problem):
    """A list of recipients is too long: at most 50 each in `to`, `cc` and `bcc`, and 500 in a batch.

    `field` names the list and `limit` its maximum. To send to more recipients, use several batches.
    """

    status, code, title = 422, "too_many_recipients", "Too many recipients"
    example = "to has 80 entries. At most 50 are allowed."
    added_members: ClassVar = {
        "field": field_path("to"),
        "limit": Member("The largest number of recipients in this field.", 50),
    }


class ReplyTrackingConflict(Problem):
    """`replyTracking` and `replyTo` are both given.

    With `replyTracking`, answers go to a signed address of this service. Omit one of the two.
    """

    status, code, title = 422, "reply_tracking_conflict", "Reply tracking conflict"
    example = "With replyTracking, the service sets Reply-To. Omit replyTo, or replyTracking."
    added_members: ClassVar = {"field": field_path("replyTracking")}


class ReceivingNotActive(Problem):
    """No domain receives the answers to this email; `domain` names the one of its sender.

    Let the domain receive with `PATCH /v1/domains/{id}` and publish its record, or ask the operator for
    `RECEIVING_DOMAIN`.
    """

    status, code, title = 422, "receiving_not_active", "Receiving not active"
    example = "demo.example does not receive email, and this service has no domain of its own for answers."
    added_members: ClassVar = {
        "field": field_path("replyTracking"),
        "domain": Member("The domain of the sender.", "demo.example"),
    }


class ReceivedEmailNotFound(Problem):
    """The workspace has no received email with this id.

    Check `inReplyToId`. Retention may have deleted the received email.
    """

    status, code, title = 422, "received_email_not_found", "Received email not found"
    example = "There is no received email 'inb_0Uf7m2kQ9VxHc3NwZrTb4L'."
    added_members: ClassVar = {"field": field_path("inReplyToId")}
