"""OpenAPI operations of `/v1/emails`."""

from drf_spectacular.utils import OpenApiParameter

from core.api.schema import Operation, response
from core.api.schema_fields import given, one_given, refine_schema
from core.workspaces.api.schema import keyed_view
from core.workspaces.errors import (
    DomainNotAllowed,
    QuotaExceeded,
    StreamNotAllowed,
    TemplateNotAllowed,
    WorkspaceSuspended,
)
from domains.errors import DomainNotRegistered, DomainNotVerified
from emails.accept.idempotency import HEADER, MAX_LENGTH
from emails.accept.rules.attachments import CONTENT_ID, CONTENT_TYPE, MAX_FILES, FileInput
from emails.accept.rules.emails import MAX_BATCH, BatchInput, SendInput
from emails.api import openapi_examples as examples
from emails.api.inputs import RejectInput, RescheduleInput, ResendInput
from emails.api.serializers import (
    AcceptedSerializer,
    BatchAcceptedSerializer,
    CancelledSerializer,
    DecidedSerializer,
    DryRunSerializer,
    EmailItemSerializer,
    EmailSerializer,
    EventSerializer,
    RescheduledSerializer,
    SentAttachmentsSerializer,
    StatsSerializer,
    TimelineSerializer,
)
from emails.errors import (
    AttachmentsTooLarge,
    ContentNotKept,
    EmailAlreadySent,
    EmailNotCancellable,
    EmailNotHeld,
    EmailNotScheduled,
    IdempotencyInProgress,
    IdempotencyKeyReuse,
    InvalidIdempotencyKey,
    ReceivedEmailNotFound,
    ReceivingNotActive,
    RecipientCapped,
    RecipientNotAllowed,
    ReplyTrackingConflict,
    TooManyAttachments,
    TooManyRecipients,
)
from emails.listing.export import COLUMNS, MAX_ROWS
from emails.listing.pages import MAX_COUNTED, MAX_REACH
from streams.errors import StreamArchived, StreamNotFound, StreamPaused
from suppressions.errors import RecipientSuppressed
from templates_app.errors import (
    MissingTemplateVariables,
    TemplateNotFound,
    TemplateNotSendable,
    TemplateOutputTooLarge,
    TemplateSyntaxInvalid,
)

BYTES = {"type": "string", "format": "binary"}
ATTACHMENT = OpenApiParameter("attachment_id", str, OpenApiParameter.PATH, description="The id of the attachment.")
LIMITED = (DomainNotAllowed, TemplateNotAllowed, StreamNotAllowed)
IDEMPOTENCY = (InvalidIdempotencyKey, IdempotencyKeyReuse, IdempotencyInProgress)
ACCEPTING = (
    *IDEMPOTENCY,
    WorkspaceSuspended,
    *LIMITED,
    StreamNotFound,
    StreamArchived,
    StreamPaused,
    DomainNotRegistered,
    DomainNotVerified,
    RecipientNotAllowed,
    RecipientSuppressed,
    RecipientCapped,
    QuotaExceeded,
)
TEMPLATE = (
    TemplateNotFound,
    TemplateNotSendable,
    TemplateSyntaxInvalid,
    MissingTemplateVariables,
    TemplateOutputTooLarge,
)
ANSWERING = (ReplyTrackingConflict, ReceivingNotActive, ReceivedEmailNotFound)
REPLAYED = ("Idempotent-Replayed", "Idempotency-Body-Mismatch")

IDEMPOTENCY_KEY = OpenApiParameter(
    HEADER,
    # Printable ASCII; surrounding whitespace is not part of a header value.
    {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    OpenApiParameter.HEADER,
    description="The strict form of `idempotencyKey`: the same key with a different body is refused. Each key accepts "
    "one request per workspace; every repeat receives the response of the first.",
)
TEXT = {"type": "string"}
EMPTY = {"type": ["array", "null"], "maxItems": 0}

refine_schema(
    FileInput,
    properties={
        "contentType": {
            # ECMAScript has no \\U escape.
            "pattern": f"^{CONTENT_TYPE.pattern}$".replace("\\U0010ffff", "\\uffff"),
            "description": "Defaults to a type guessed from the filename.",
        },
        "contentId": {
            "pattern": f"^{CONTENT_ID.pattern}$",
            "description": "Makes the attachment an inline image, referenced by `cid:` in the HTML.",
        },
    },
)
refine_schema(
    SendInput,
    properties={"attachments": {"maxItems": MAX_FILES}},
    **{
        # Without a recipient.
        "not": {"required": ["to"], "properties": {"to": EMPTY, "cc": EMPTY, "bcc": EMPTY}},
        "if": given("inReplyToId"),
        "then": one_given("templateId", "html", "text"),
        "else": {
            "required": ["to"],
            "if": given("templateId"),
            "else": {**given("subject"), **one_given("html", "text")},
        },
    },
)
refine_schema(BatchInput, properties={"recipients": {"maxItems": MAX_BATCH}})
refine_schema(
    EmailSerializer,
    properties={
        "htmlContent": {**TEXT, "description": "Without footer and tracking."},
        "text": {**TEXT, "description": "The plain-text content; empty if the email has only HTML."},
    },
)
refine_schema(
    EventSerializer,
    properties={
        "payload": {
            "properties": {
                "emailId": {**TEXT, "description": "The id of the email."},
                "to": {**TEXT, "description": "The address of the recipient."},
            },
            "required": ["emailId"],
        }
    },
)

emails_schema = keyed_view(
    send=Operation(
        "sendEmail",
        "Send an email",
        "Send one email, now or later (`scheduledFor`). Give `html`, `text` or `templateId`; a template takes "
        "precedence. A list in `to` is one email, and each recipient sees all addresses in `to`. A 202 response means "
        "that the email is stored durably and will be sent. With `dryRun` the request is checked in full and nothing "
        "is sent: the response is 200 and shows the rendered content.",
        [
            response(
                AcceptedSerializer, "The email is accepted.", examples=examples.ACCEPTED, status=202, headers=REPLAYED
            ),
            response(DryRunSerializer, "The request passed the dry run.", examples.DRY_RUN),
        ],
        problems=[*ACCEPTING, *TEMPLATE, *ANSWERING, TooManyRecipients, TooManyAttachments, AttachmentsTooLarge],
        body=SendInput,
        bodies=examples.SEND,
        parameters=[IDEMPOTENCY_KEY],
    ),
    batch=Operation(
        "sendBatch",
        "Send a template to many recipients",
        "Accepts a separate email for each of up to 500 recipients, all of them or none. Suppressed recipients are "
        "skipped and listed in `rejected`; if all are suppressed the response is 422. `ids` lists the accepted emails "
        "in the order of the request. A recipient's `metadata` is merged into the shared `metadata`.",
        response(
            BatchAcceptedSerializer, "The emails are accepted.", examples.BATCH_ACCEPTED, status=202, headers=REPLAYED
        ),
        problems=[*ACCEPTING, *TEMPLATE, TooManyRecipients],
        body=BatchInput,
        bodies=examples.BATCH,
        parameters=[IDEMPOTENCY_KEY],
    ),
    list=Operation(
        "listEmails",
        "List emails",
        f"Returns the workspace's emails, newest first. `total` is exact up to {MAX_COUNTED:,} and, without other "
        "filters than `status` and `test`, for any number; otherwise `totalIsExact` is false. A filter without an "
        f"index compares the newest emails only, and pages reach {MAX_REACH:,} emails: the last page then has "
        "`continueTo`, the value of `to` with which the list continues.",
        response(EmailItemSerializer, "A page of emails.", examples.ITEM),
    ),
    export=Operation(
        "exportEmails",
        "Export emails as CSV",
        f"Streams the newest {MAX_ROWS:,} emails that the filters match, as CSV with the columns "
        f"{', '.join(f'`{name}`' for name in COLUMNS)}. If more match, or may, `X-Export-Truncated` is `true`. A "
        "cell that a spreadsheet would run as a formula is prefixed with an apostrophe.",
        response(
            TEXT,
            "The emails.",
            examples.CSV,
            headers=("X-Export-Truncated", "Content-Disposition"),
            media_type="text/csv",
        ),
    ),
    retrieve=Operation(
        "getEmail",
        "Get an email",
        "Returns one email with its content, the names of its attachments and the status of each recipient. `status` "
        "is the most advanced status of any recipient.",
        response(EmailSerializer, "The email.", examples.EMAIL),
    ),
    events=Operation(
        "listEmailEvents",
        "List an email's events",
        "Returns the events of an email, oldest first.",
        response(TimelineSerializer, "The timeline.", examples.TIMELINE),
        answers_many=True,
    ),
    attachments=Operation(
        "listEmailAttachments",
        "List an email's attachments",
        "Returns the attached files and inline images of an email with URLs for an hour; none once its content is "
        "deleted.",
        response(SentAttachmentsSerializer, "The files.", examples.ATTACHMENTS),
        answers_many=True,
    ),
    attachment=Operation(
        "getEmailAttachment",
        "Get an attachment of an email",
        "Returns the bytes of an attachment.",
        response(BYTES, "The file.", "Hello", media_type="application/octet-stream"),
        parameters=[ATTACHMENT],
    ),
    resend=Operation(
        "resendEmail",
        "Resend an email",
        "Accepts a copy of any existing email whose content is kept, with a new id, and sends it immediately. Domain, "
        "suppressions and quota are checked again. The body is optional.",
        response(
            AcceptedSerializer, "The copy is accepted.", examples.ACCEPTED["Queued"], status=202, headers=REPLAYED
        ),
        problems=[*ACCEPTING, ContentNotKept],
        body=ResendInput,
        body_may_be_empty=True,
        bodies={"With a key": {"idempotencyKey": "again-1042"}},
        parameters=[IDEMPOTENCY_KEY],
    ),
    partial_update=Operation(
        "rescheduleEmail",
        "Reschedule an email",
        "Reschedules a scheduled email to another time, at most 30 days ahead. Null sends it immediately. The seconds "
        "of `deliverWithin` count from the new time; a time at or after `expiresAt` is refused.",
        response(RescheduledSerializer, "The email is rescheduled.", examples.RESCHEDULED),
        problems=[WorkspaceSuspended, EmailNotScheduled],
        body=RescheduleInput,
        bodies={"Another time": {"scheduledFor": "2026-11-25T07:00:00Z"}, "Now": {"scheduledFor": None}},
    ),
    approve=Operation(
        "approveEmail",
        "Approve an email",
        "Approves an email that waits for approval: it is sent as it was accepted, at its scheduled time or now. "
        "Suppressions and its expiry are checked again. Only the first decision counts; a later one gets "
        "`email_not_held` with the decision that was made.",
        response(DecidedSerializer, "The email is approved.", examples.APPROVED),
        problems=[EmailNotHeld],
    ),
    reject=Operation(
        "rejectEmail",
        "Reject an email",
        "Rejects an email that waits for approval: it is cancelled. If it was accepted in the current month, its quota "
        "is refunded. The body is optional.",
        response(DecidedSerializer, "The email is rejected.", examples.REJECTED),
        problems=[EmailNotHeld],
        body=RejectInput,
        body_may_be_empty=True,
        bodies={"With a reason": {"reason": "The price is wrong."}},
    ),
    destroy=Operation(
        "cancelEmail",
        "Cancel a scheduled email",
        "Cancels a scheduled email, or one that waits for approval. A 200 response means that the email will never be "
        "sent. If it was accepted in the current month, its quota is refunded. Repeating the request returns the same "
        "response.",
        response(CancelledSerializer, "The email is cancelled.", {"id": examples.ID, "status": "cancelled"}),
        problems=[EmailAlreadySent, EmailNotCancellable],
    ),
)

queue_schema = keyed_view(
    get=Operation(
        "getQueueStats",
        "Get queue statistics",
        "Returns exact counts of the recipients of this workspace, at most one second old. `waiting` are due now, "
        "`active` are being sent to, and `delayed` are scheduled or waiting for a retry. `completed` were accepted by "
        "the receiving server and `failed` were not, over all time. In a suspended workspace, `waiting` and `delayed` "
        "recipients count as `paused`.",
        response(StatsSerializer, "The queue statistics.", examples.STATS),
        answers_many=True,
    )
)
