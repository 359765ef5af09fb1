"""OpenAPI operations of `/v1/emails`. Their shapes are in emails.api.openapi_shapes."""

from drf_spectacular.utils import OpenApiParameter, extend_schema_view

from api.schema import (
    DATE_OR_DATETIME,
    INTEGER,
    NOT_FOUND,
    TEXT,
    VALIDATION_ERROR,
    describe_problem,
    header,
    page_of,
    paging,
    query,
    response,
)
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
from emails.states import EmailStatus
from suppressions.schema import RECIPIENT_SUPPRESSED
from templates_app.schema import (
    MISSING_TEMPLATE_VARIABLES,
    TEMPLATE_NOT_FOUND,
    TEMPLATE_OUTPUT_TOO_LARGE,
    TEMPLATE_SYNTAX_ERROR,
)
from workspaces.api.schema import ANY, QUOTA_EXCEEDED, READING, SENDING, WORKSPACE_SUSPENDED, keyed_operation

INVALID_IDEMPOTENCY_KEY = describe_problem(
    errors.InvalidIdempotencyKey,
    "The Idempotency-Key header and the idempotencyKey field differ. Send only one of them.",
)
IDEMPOTENCY_KEY_REUSE = describe_problem(
    errors.IdempotencyKeyReuse, "This idempotency key was used for a different request. Use a new key."
)
IDEMPOTENCY_IN_PROGRESS = describe_problem(
    errors.IdempotencyInProgress,
    "A request with this idempotency key is still in progress. Retry later.",
    headers=("Retry-After",),
)
EMAIL_ALREADY_SENT = describe_problem(errors.EmailAlreadySent, "This email was already sent and cannot be cancelled.")
EMAIL_NOT_CANCELLABLE = describe_problem(
    errors.EmailNotCancellable, "This email is queued. Only scheduled emails can be cancelled."
)
EMAIL_NOT_SCHEDULED = describe_problem(
    errors.EmailNotScheduled, "This email is no longer scheduled and cannot be rescheduled."
)
ATTACHMENTS_TOO_LARGE = describe_problem(
    errors.AttachmentsTooLarge,
    f"Attachments must not exceed {MAX_TOTAL_BYTES:,} bytes in total after decoding.",
    members={"limit": INTEGER},
    example={"limit": MAX_TOTAL_BYTES},
)
TOO_MANY_ATTACHMENTS = describe_problem(
    errors.TooManyAttachments,
    f"At most {MAX_FILES} attachments are allowed; this email has 12.",
    members={"limit": INTEGER},
    example={"limit": MAX_FILES},
)
TOO_MANY_RECIPIENTS = describe_problem(
    errors.TooManyRecipients,
    "to has 80 entries. At most 50 are allowed.",
    members={"field": TEXT, "limit": INTEGER},
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
    # Printable ASCII; surrounding whitespace is not part of a header value.
    {"type": "string", "minLength": 1, "maxLength": MAX_LENGTH, "pattern": "^[!-~]([ -~]*[!-~])?$"},
    "The strict form of `idempotencyKey`: the same key with a different body is refused. Each key accepts one request "
    "per workspace; every repeat receives the response of the first.",
)
STATUSES = {"type": "array", "items": {"enum": EmailStatus.values}}
FILTERS = (
    OpenApiParameter(
        "status", STATUSES, explode=False, style="form", description="One status, or several separated by commas."
    ),
    query(
        "search",
        {"type": "string", "maxLength": MAX_SEARCH_LENGTH},
        "A literal, case-insensitive substring of the recipients in `to` or of the subject.",
    ),
    query("tag", {"type": "string", "maxLength": 255}, "A tag of the email."),
    query("from", DATE_OR_DATETIME, "Created at or after this time, or on or after this date."),
    query(
        "to", DATE_OR_DATETIME, "Created at or before this time, or on or before this date. Must not be before `from`."
    ),
)

emails_schema = extend_schema_view(
    send=keyed_operation(
        "sendEmail",
        "Send an email",
        "Accepts one email, sent immediately or at `scheduledFor`. It requires `html`, `text` or `templateId`; the "
        "template's content overrides `html` and `text`. A list in `to` is one email, and each recipient sees all "
        "addresses in `to`. A 202 response means that the email is stored durably and will be sent. With `dryRun` "
        "the request is checked in full and nothing is sent: the response is 200 and shows the rendered content.",
        scope=SENDING,
        body=SendInput,
        bodies=examples.SEND,
        responses=[
            response(202, AcceptedSerializer, "The email is accepted.", examples=examples.ACCEPTED, headers=REPLAYED),
            response(200, DryRunSerializer, "The request passed the dry run.", example=examples.DRY_RUN),
        ],
        problems=[*ACCEPTING, *TEMPLATE, TOO_MANY_RECIPIENTS, TOO_MANY_ATTACHMENTS, ATTACHMENTS_TOO_LARGE],
        parameters=[IDEMPOTENCY_KEY],
    ),
    batch=keyed_operation(
        "sendBatch",
        "Send a template to many recipients",
        "Accepts a separate email for each of up to 500 recipients, all of them or none. Suppressed recipients are "
        "skipped and listed in `rejected`; if all are suppressed the response is 422. `ids` lists the accepted emails "
        "in the order of the request. A recipient's `metadata` is merged into the shared `metadata`.",
        scope=SENDING,
        body=BatchInput,
        bodies=examples.BATCH,
        responses=[
            response(
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
        responses=[
            response(
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
        f"{', '.join(f'`{name}`' for name in COLUMNS)}. If more emails match, `X-Export-Truncated` is `true`. A cell "
        "that a spreadsheet would run as a formula is prefixed with an apostrophe.",
        scope=ANY,
        responses=[
            response(
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
        "Returns one email with its content, the names of its attachments and the status of each recipient. `status` "
        "is the most advanced status of any recipient.",
        scope=ANY,
        responses=[response(200, EmailSerializer, "The email.", example=examples.EMAIL)],
        problems=[NOT_FOUND],
    ),
    events=keyed_operation(
        "listEmailEvents",
        "List an email's events",
        "Returns the events of an email, oldest first.",
        scope=ANY,
        responses=[response(200, TimelineSerializer, "The timeline.", example=examples.TIMELINE)],
        problems=[NOT_FOUND],
    ),
    resend=keyed_operation(
        "resendEmail",
        "Resend an email",
        "Accepts a copy of any existing email, with a new id, and sends it immediately. Domain, suppressions and quota "
        "are checked again. The body is optional.",
        scope=SENDING,
        body=ResendInput,
        body_may_be_empty=True,
        bodies={"With a key": {"idempotencyKey": "again-1042"}},
        responses=[
            response(
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
        "Reschedule an email",
        "Reschedules a scheduled email to another time, at most 30 days ahead. Null sends it immediately.",
        scope=SENDING,
        body=RescheduleInput,
        bodies={"Another time": {"scheduledFor": "2026-11-25T07:00:00Z"}, "Now": {"scheduledFor": None}},
        responses=[response(200, RescheduledSerializer, "The email is rescheduled.", example=examples.RESCHEDULED)],
        problems=[NOT_FOUND, WORKSPACE_SUSPENDED, EMAIL_NOT_SCHEDULED],
    ),
    destroy=keyed_operation(
        "cancelEmail",
        "Cancel a scheduled email",
        "Cancels a scheduled email. A 200 response means that the email will never be sent. If it was accepted "
        "in the current month, its quota is refunded. Repeating the request returns the same response.",
        scope=SENDING,
        responses=[
            response(
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
        "Get queue statistics",
        "Returns exact counts of the recipients of this workspace, at most one second old. `waiting` are due now, "
        "`active` are being sent to, and `delayed` are scheduled or waiting for a retry. `completed` were accepted by "
        "the receiving server and `failed` were not, over all time. In a suspended workspace, `waiting` and `delayed` "
        "recipients count as `paused`.",
        scope=READING,
        responses=[response(200, StatsSerializer, "The queue statistics.", example=examples.STATS)],
    )
)
