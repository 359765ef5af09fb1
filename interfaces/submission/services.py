"""The steps of a session that use the database: signing in, one message, its recipients, its content.

Each runs in a thread and returns an SMTP reply or raises an exception for `interfaces.submission.replies`.
"""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from django.conf import settings
from django.db import DataError, IntegrityError

from core.api.errors import Problem
from core.delivery.message.compose import whole_file
from core.lib.email_addresses import Address, InvalidAddress, normalize_address, parse_recipient
from core.lib.worker.failpoints import failpoint
from core.workspaces.account_status import refuse_inactive, refuse_suspended
from core.workspaces.api.authentication import ReadAddress, find_key
from core.workspaces.api.throttling import refuse_excess, take_key_request
from core.workspaces.errors import InsufficientScope
from core.workspaces.key_limits import KeyLimits
from core.workspaces.models import ApiKey
from emails.accept.idempotency import IdempotencyKey, find_response, parse_key_header, stored_text
from emails.accept.services import accept_emails, send_email
from emails.accept.suppressed import SuppressionPolicy
from emails.recipient_rules import applied_rules, is_refused, treat_address
from interfaces.submission.drafts import SubmittedEmail, read_email
from interfaces.submission.errors import ConversionNotAllowed, Refused
from interfaces.submission.replies import ACCEPTED, REPEATED, add_header_name, reply_to_error
from streams.models import MAIN
from suppressions.services import find_suppressed

SENDING_SCOPES = frozenset(ApiKey.Scope) - {ApiKey.Scope.READ_ONLY, ApiKey.Scope.APPROVALS}


class InvalidRecipient(Refused):
    """Raised for an address that is not one."""

    code = "553 5.1.3"


class NeedsSmtpUtf8(Refused):
    """Raised for an internationalized address without SMTPUTF8 (RFC 6531, section 3.5)."""

    code = "553 5.6.7"


class DisallowedRecipient(Refused):
    """Raised for an address that the rules of the workspace or the key do not allow."""

    code = "550 5.7.1"


class SuppressedRecipient(Refused):
    """Raised for an address on the suppression list, with the reason and the suppression's id."""

    code = "550 5.7.1"


def sign_in(password: str, *, client: ReadAddress) -> ApiKey:
    """Return the API key that a client sent as its password.

    Raises Unauthenticated, NetworkNotAllowed, InsufficientScope.
    """
    key = find_key(password.strip(), client=client)
    if key.scope not in SENDING_SCOPES:
        needed = ApiKey.Scope.SENDING_ACCESS.value
        raise InsufficientScope(f"Sending requires an API key with scope {needed}.", requiredScope=needed)
    return key


def begin_message(password: str, *, client: ReadAddress) -> ApiKey:
    """Return the key of a session that begins a message; it uses one request of the rate limit.

    The key is checked again, as in each request to the API: a session may be open for longer than its key is valid.
    Raises Unauthenticated, NetworkNotAllowed, RateLimitExceeded, WorkspaceDeleted, WorkspaceSuspended.
    """
    key = sign_in(password, client=client)
    refuse_excess(take_key_request(key))
    _refuse_stopped(key)
    return key


def check_recipient(key: ApiKey, text: str, *, has_smtputf8: bool) -> Address:
    """Return the address of RCPT.

    Raises InvalidRecipient, NeedsSmtpUtf8, DisallowedRecipient, SuppressedRecipient.
    """
    try:
        address = parse_recipient(text)
    except InvalidAddress as error:
        raise InvalidRecipient(str(error)) from error
    if not has_smtputf8 and not address.spec.isascii():
        raise NeedsSmtpUtf8("This address requires the parameter SMTPUTF8 of MAIL FROM")
    rules = applied_rules(workspace=key.workspace.rules, key=key.limits.rules)
    if is_refused(treat_address(rules, address.spec, is_test=key.is_test)):
        raise DisallowedRecipient(f"The recipient rules do not allow {address.spec}")
    if suppression_policy() is SuppressionPolicy.REFUSE and not key.is_test:
        # The message may name another stream later; the check after DATA is the one that decides.
        stream = key.limits.streams[0] if len(key.limits.streams) == 1 else MAIN
        found = find_suppressed(key.workspace_id, [address.spec], stream=stream).get(normalize_address(address.spec))
        if found:
            raise SuppressedRecipient(f"{address.spec} is on the suppression list ({found.reason}); id {found.id}")
    return address


def complete_message(
    password: str,
    source: bytes | bytearray,
    *,
    recipients: Collection[Address],
    deliver_within: int | None = None,
    client: ReadAddress,
) -> tuple[ApiKey, SubmittedEmail]:
    """Return the key of a session and the email that its message asks for.

    deliver_within: the seconds of BY.
    The key is checked again: the message may have arrived over an hour. Raises Refused, and the errors of
    begin_message.
    """
    key = sign_in(password, client=client)
    _refuse_stopped(key)
    submitted = read_submitted(
        source, recipients=recipients, deliver_within=deliver_within, workspace_id=key.workspace_id
    )
    return key, submitted


def read_submitted(
    source: bytes | bytearray,
    *,
    recipients: Collection[Address],
    deliver_within: int | None = None,
    workspace_id: str = "",
) -> SubmittedEmail:
    """Return the email that a message asks for.

    deliver_within: the seconds of BY.
    workspace_id: for its routes.
    Raises Refused.
    """
    failpoint("submission.after_data")
    submitted = read_email(source, recipients=recipients, deliver_within=deliver_within)
    _refuse_unchangeable(submitted, workspace_id=workspace_id)
    return submitted


def accept_email(api_key: ApiKey, submitted: SubmittedEmail) -> str:
    """Accept an email; return the reply with its id. Raises Refused, and the errors of send_email."""
    workspace, limits = api_key.workspace, api_key.limits
    try:
        key = _idempotency_key(submitted, limits)
        response = find_response(workspace, key) or send_email(
            workspace, draft=submitted.draft, key=key, limits=limits, suppressed=suppression_policy()
        )
    except Problem as problem:
        add_header_name(problem, submitted.headers)
        raise
    failpoint("submission.before_reply")
    return (REPEATED if response.headers else ACCEPTED).format(response.body["id"])


def accept_together(key: ApiKey, emails: Sequence[SubmittedEmail]) -> list[str]:
    """Accept emails without idempotency keys in one statement; return the reply to each.

    An email that is refused, or all if the statement fails, are accepted alone, so that the others do not matter to
    their replies. Raises OperationalError, InterfaceError: the statement may have been committed.
    """
    results: Sequence[Mapping[str, Any]] = [{}] * len(emails)
    if len(emails) > 1:
        with suppress(Problem, DataError, IntegrityError):
            drafts = [submitted.draft for submitted in emails]
            response = accept_emails(
                key.workspace,
                drafts=drafts,
                key=None,
                limits=key.limits,
                all_or_nothing=False,
                suppressed=suppression_policy(),
            )
            results = response.body["results"]
    replies = [
        ACCEPTED.format(result["id"]) if "id" in result else _accept_alone(key, submitted)
        for submitted, result in zip(emails, results, strict=True)
    ]
    failpoint("submission.before_replies")
    return replies


def suppression_policy() -> SuppressionPolicy:
    return SuppressionPolicy(settings.SUBMISSION_SUPPRESSED)


def _refuse_stopped(key: ApiKey) -> None:
    refuse_inactive(key.workspace)
    refuse_suspended(key.workspace)


def _accept_alone(key: ApiKey, submitted: SubmittedEmail) -> str:
    try:
        return accept_email(key, submitted)
    except Exception as error:  # noqa: BLE001 - reply_to_error logs it
        return reply_to_error(error)


def _delivers_by_providers(workspace_id: str) -> bool:
    if settings.TRANSPORTS.is_named:
        return bool(settings.TRANSPORTS.all_are("anymail", workspace_id=workspace_id))
    return bool(settings.DELIVERY_TRANSPORT == "anymail")


def _refuse_unchangeable(submitted: SubmittedEmail, *, workspace_id: str) -> None:
    """Raise ConversionNotAllowed for a signed or encrypted message that the transport could only send changed."""
    if whole_file(submitted.draft.files) and _delivers_by_providers(workspace_id):
        raise ConversionNotAllowed(
            "This server delivers through a provider, which cannot send signed messages unchanged"
        )


def _idempotency_key(submitted: SubmittedEmail, limits: KeyLimits) -> IdempotencyKey | None:
    if submitted.key is None:
        return None
    text = stored_text(parse_key_header(submitted.key), limits)
    return IdempotencyKey(text, operation="send", fingerprint=submitted.fingerprint, is_strict=True)
