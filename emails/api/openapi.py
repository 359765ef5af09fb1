"""`/v1/emails` in the OpenAPI document: the operations. Their shapes are in emails.api.openapi_shapes."""

from drf_spectacular.utils import OpenApiParameter, extend_schema_view

from api.schema import MOMENT, NOT_FOUND, TEXT, VALIDATION_ERROR, WHOLE, answer, header, known, page_of, paging, query
from domains.schema import DOMAIN_NOT_REGISTERED, DOMAIN_NOT_VERIFIED
from emails import errors
from emails.accept.idempotency import HEADER, MAX_LENGTH
from emails.api import openapi_examples as examples
from emails.api.attachments import MAX_FILES, MAX_TOTAL_BYTES
from emails.api.export import COLUMNS, MAX_ROWS
from emails.api.filters import MAX_SEARCH_LENGTH
from emails.api.inputs import BatchInput, RescheduleInput, ResendInput, SendInput
from emails.api.openapi_shapes import (
    AcceptedSerializer,
    BatchAcceptedSerializer,
    CancelledSerializer,
    DryRunSerializer,
    RescheduledSerializer,
    TimelineSerializer,
)
from emails.api.serializers import EmailItemSerializer, EmailSerializer, StatsSerializer
from emails.states import State
from suppressions.schema import RECIPIENT_SUPPRESSED
from templates_app.schema import (
    MISSING_TEMPLATE_VARIABLES,
    TEMPLATE_NOT_FOUND,
    TEMPLATE_OUTPUT_TOO_LARGE,
    TEMPLATE_SYNTAX_ERROR,
)
from workspaces.api.schema import ANY, QUOTA_EXCEEDED, READING, SENDING, WORKSPACE_SUSPENDED, keyed_operation

INVALID_IDEMPOTENCY_KEY = known(
    errors.InvalidIdempotencyKey, "The Idempotency-Key header and the field idempotencyKey differ; send one of them."
)
IDEMPOTENCY_KEY_REUSE = known(
    errors.IdempotencyKeyReuse, "This idempotency key was used for another request; take a new one."
)
IDEMPOTENCY_IN_PROGRESS = known(
    errors.IdempotencyInProgress,
    "A request with this idempotency key is being accepted; ask again.",
    headers=("Retry-After",),
)
EMAIL_ALREADY_SENT = known(errors.EmailAlreadySent, "This email was sent already.")
EMAIL_NOT_CANCELLABLE = known(
    errors.EmailNotCancellable, "This email is queued; only a scheduled one can be cancelled."
)
EMAIL_NOT_SCHEDULED = known(errors.EmailNotScheduled, "This email is not scheduled any more.")
ATTACHMENTS_TOO_LARGE = known(
    errors.AttachmentsTooLarge,
    f"Attachments may have {MAX_TOTAL_BYTES:,} bytes in all, decoded.",
    members={"limit": WHOLE},
    example={"limit": MAX_TOTAL_BYTES},
)
TOO_MANY_ATTACHMENTS = known(
    errors.TooManyAttachments,
    f"An email takes {MAX_FILES} attachments; this one has 12.",
    members={"limit": WHOLE},
    example={"limit": MAX_FILES},
)
TOO_MANY_RECIPIENTS = known(
    errors.TooManyRecipients,
    "to has 80 entries; this call takes 50.",
    members={"field": TEXT, "limit": WHOLE},
    example={"field": "to", "limit": 50},
)

IDEMPOTENCY = (INVALID_IDEMPOTENCY_KEY, IDEMPOTENCY_KEY_REUSE, IDEMPOTENCY_IN_PROGRESS)
ACCEPTING = (
    *IDEMPOTENCY,
    WORKSPACE_SUSPENDED,
    DOMAIN_NOT_REGISTERED,
    DOMAIN_NOT_VERIFIED,
    RECIPIENT_SUPPRESSED,
    QUOTA_EXCEEDED,
)
TEMPLATE = (TEMPLATE_NOT_FOUND, TEMPLATE_SYNTAX_ERROR, MISSING_TEMPLATE_VARIABLES, TEMPLATE_OUTPUT_TOO_LARGE)
REPLAYED = ("Idempotent-Replayed", "Idempotency-Body-Mismatch")

IDEMPOTENCY_KEY = header(
    HEADER,
    # Printable ASCII; what surrounds a header's value is not part of it.
    {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "The strict form of `idempotencyKey`: the same key with another body is refused. Of one key a workspace accepts "
    "one request; every repetition gets its answer.",
)
STATUSES = {"type": "array", "items": {"enum": State.values}}
FILTERS = (
    OpenApiParameter(
        "status", STATUSES, explode=False, style="form", description="One status, or several with commas."
    ),
    query(
        "search",
        {"type": "string", "maxLength": MAX_SEARCH_LENGTH},
        "A text that a recipient in `to`, or the subject, holds; taken literally and without case.",
    ),
    query("tag", {"type": "string", "maxLength": 255}, "A tag that the email has."),
    query("from", MOMENT, "Created at or after this moment, or from this day on."),
    query("to", MOMENT, "Created at or before this moment, or up to the end of this day. Not before `from`."),
)

emails_schema = extend_schema_view(
    send=keyed_operation(
        "sendEmail",
        "Send an email",
        "Accepts one email, to be sent at once or at `scheduledFor`. It needs `html`, `text` or a `templateId`; the "
        "template's texts win. `to` may be a list: that is one email, which all of its recipients see addressed to all "
        "of them. When it is answered with 202 the email is kept safely and will be sent. With `dryRun` everything is "
        "checked and nothing is sent: the answer is 200 and shows what would be.",
        scope=SENDING,
        body=SendInput,
        bodies=examples.SEND,
        answers=[
            answer(202, AcceptedSerializer, "The email is accepted.", examples=examples.ACCEPTED, headers=REPLAYED),
            answer(200, DryRunSerializer, "The dry run found nothing wrong.", example=examples.DRY_RUN),
        ],
        problems=[*ACCEPTING, *TEMPLATE, TOO_MANY_RECIPIENTS, TOO_MANY_ATTACHMENTS, ATTACHMENTS_TOO_LARGE],
        parameters=[IDEMPOTENCY_KEY],
    ),
    batch=keyed_operation(
        "sendBatch",
        "Send a template to many",
        "Accepts an email of its own for each of up to 500 recipients, all of them or none. Suppressed recipients are "
        "left out and listed in `rejected`; when nobody is left the answer is 422. `ids` are those of the accepted, in "
        "the order of the request. A recipient's `metadata` adds to what all share.",
        scope=SENDING,
        body=BatchInput,
        bodies=examples.BATCH,
        answers=[
            answer(
                202,
                BatchAcceptedSerializer,
                "The emails are accepted.",
                example=examples.BATCH_ACCEPTED,
                headers=REPLAYED,
            )
        ],
        problems=[*ACCEPTING, *TEMPLATE, TOO_MANY_RECIPIENTS],
        parameters=[IDEMPOTENCY_KEY],
    ),
    list=keyed_operation(
        "listEmails",
        "List emails",
        "Returns the workspace's emails, newest first.",
        scope=ANY,
        answers=[
            answer(
                200, page_of(EmailItemSerializer, name="EmailPage"), "A page of emails.", example=examples.EMAIL_PAGE
            )
        ],
        problems=[VALIDATION_ERROR],
        parameters=[*paging(default=20), *FILTERS],
    ),
    export=keyed_operation(
        "exportEmails",
        "Export emails as CSV",
        f"Streams the newest {MAX_ROWS:,} emails that the filters match, as CSV with the columns "
        f"{', '.join(f'`{name}`' for name in COLUMNS)}. When there are more, `X-Export-Truncated` says so. A cell that "
        "a spreadsheet would run as a formula begins with an apostrophe.",
        scope=ANY,
        answers=[
            answer(
                200,
                TEXT,
                "The emails.",
                example=examples.CSV,
                headers=("X-Export-Truncated", "Content-Disposition"),
                media_type="text/csv",
            )
        ],
        problems=[VALIDATION_ERROR],
        parameters=FILTERS,
    ),
    retrieve=keyed_operation(
        "getEmail",
        "Get an email",
        "Returns one email with its texts, its attachments' names and the state of each recipient. `status` is the "
        "furthest that any recipient has come.",
        scope=ANY,
        answers=[answer(200, EmailSerializer, "The email.", example=examples.EMAIL)],
        problems=[NOT_FOUND],
    ),
    events=keyed_operation(
        "listEmailEvents",
        "List an email's events",
        "Returns everything that happened to an email, oldest first.",
        scope=ANY,
        answers=[answer(200, TimelineSerializer, "The timeline.", example=examples.TIMELINE)],
        problems=[NOT_FOUND],
    ),
    resend=keyed_operation(
        "resendEmail",
        "Send an email again",
        "Accepts a copy of any existing email, with a new id, to be sent at once. Domain, suppressions and quota are "
        "checked again. The body may be left out.",
        scope=SENDING,
        body=ResendInput,
        body_may_be_empty=True,
        bodies={"With a key": {"idempotencyKey": "again-1042"}},
        answers=[
            answer(
                202,
                AcceptedSerializer,
                "The copy is accepted.",
                example=examples.ACCEPTED["Queued"],
                headers=REPLAYED,
            )
        ],
        problems=[*ACCEPTING, NOT_FOUND],
        parameters=[IDEMPOTENCY_KEY],
    ),
    partial_update=keyed_operation(
        "rescheduleEmail",
        "Move a scheduled email",
        "Moves an email that is still scheduled to another time, at most 30 days ahead; null sends it now.",
        scope=SENDING,
        body=RescheduleInput,
        bodies={"Another time": {"scheduledFor": "2026-11-25T07:00:00Z"}, "Now": {"scheduledFor": None}},
        answers=[answer(200, RescheduledSerializer, "The email is moved.", example=examples.RESCHEDULED)],
        problems=[NOT_FOUND, WORKSPACE_SUSPENDED, EMAIL_NOT_SCHEDULED],
    ),
    destroy=keyed_operation(
        "cancelEmail",
        "Cancel a scheduled email",
        "Cancels an email that is still scheduled. A 200 means that it will never be sent; what it took of the quota "
        "is given back within the same month. Cancelling again is answered the same.",
        scope=SENDING,
        answers=[
            answer(
                200,
                CancelledSerializer,
                "The email is cancelled.",
                example={"id": examples.ID, "status": "cancelled"},
            )
        ],
        problems=[NOT_FOUND, EMAIL_ALREADY_SENT, EMAIL_NOT_CANCELLABLE],
    ),
)

queue_schema = extend_schema_view(
    get=keyed_operation(
        "getQueueStats",
        "Get the queue's counters",
        "Counts the recipients of this workspace, exactly, at most one second ago: `waiting` are due now, `active` are "
        "being sent to, `delayed` are scheduled or wait for another attempt. `completed` were accepted by the mail "
        "server and `failed` were not, since the workspace began. While a workspace is suspended, what would wait is "
        "`paused`.",
        scope=READING,
        answers=[answer(200, StatsSerializer, "The counters.", example=examples.STATS)],
    )
)
