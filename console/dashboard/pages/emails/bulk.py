"""Actions on the selected emails of the list: each email on its own, with a confirmation (docs/decisions/0263)."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy, ngettext

from console.dashboard.auth.current_workspace import has_held_emails, is_owner
from console.dashboard.pages.emails.resend import resend_once
from console.dashboard.ui.confirm import problem_message
from console.dashboard.ui.listing import PER_PAGE
from core.api.errors import Problem
from core.lib.email_addresses import normalize_address
from core.workspaces.audit import AuditAction, record_action
from core.workspaces.key_limits import NO_LIMITS
from core.workspaces.models import Workspace
from emails.approvals import approve_email, reject_email
from emails.models import Email, Recipient
from emails.sending.scheduling import cancel_email
from suppressions.serializers import MAX_ADDRESSES
from suppressions.services import suppress_manually

MAX_SELECTED = 4 * PER_PAGE


@dataclass(frozen=True)
class BulkAction:
    """A button below the list.

    run: shows messages with the outcome.
    lead: the lead of its confirmation.
    """

    run: Callable[[HttpRequest, Workspace, Sequence[Email]], None]
    label: str | Promise
    icon: str
    lead: str | Promise
    is_danger: bool = False


def resend_all(request: HttpRequest, workspace: Workspace, emails: Sequence[Email]) -> None:
    """Send a copy of each email, once for each confirmation page; show messages with the outcome."""
    nonce = request.POST.get("nonce", "")[:32]
    sent = _try_each(request, emails, lambda email: resend_once(workspace, email, nonce=f"{nonce}-{email.id}"))
    text = ngettext("%(count)s email was sent again.", "%(count)s emails were sent again.", sent)
    _show(request, text, sent)


def cancel_all(request: HttpRequest, workspace: Workspace, emails: Sequence[Email]) -> None:
    cancelled = _try_each(request, emails, cancel_once)
    text = ngettext("%(count)s email was cancelled.", "%(count)s emails were cancelled.", cancelled)
    _show(request, text, cancelled)


def suppress_recipients(request: HttpRequest, workspace: Workspace, emails: Sequence[Email]) -> None:
    addresses = addresses_of(emails)
    chunks = [addresses[start : start + MAX_ADDRESSES] for start in range(0, len(addresses), MAX_ADDRESSES)]
    results = [result for chunk in chunks for result in suppress_manually(workspace, addresses=chunk)]
    added = sum(is_new for _suppression, is_new in results)
    text = ngettext("%(count)s address was suppressed.", "%(count)s addresses were suppressed.", added)
    messages.success(request, text % {"count": added})


def approve_all(request: HttpRequest, workspace: Workspace, emails: Sequence[Email]) -> None:
    approved = _try_each(request, emails, approve_email)
    text = ngettext("%(count)s email was approved.", "%(count)s emails were approved.", approved)
    _show(request, text, approved)


def reject_all(request: HttpRequest, workspace: Workspace, emails: Sequence[Email]) -> None:
    rejected = _try_each(request, emails, reject_email)
    text = ngettext("%(count)s email was rejected.", "%(count)s emails were rejected.", rejected)
    _show(request, text, rejected)


ACTIONS = {
    "resend": BulkAction(
        resend_all,
        gettext_lazy("Send again"),
        "replay",
        gettext_lazy("This sends a copy of each to the same recipients now. The copies count towards your quota."),
    ),
    "cancel": BulkAction(
        cancel_all,
        gettext_lazy("Cancel emails"),
        "block",
        gettext_lazy("The scheduled ones will not be sent, and their quota is refunded. The others stay as they are."),
        is_danger=True,
    ),
    "suppress": BulkAction(
        suppress_recipients,
        gettext_lazy("Suppress recipients"),
        "person_remove",
        gettext_lazy("No email of this workspace will be sent to the recipients, including queued emails."),
        is_danger=True,
    ),
}


APPROVAL_ACTIONS = {
    "approve": BulkAction(
        approve_all,
        gettext_lazy("Approve"),
        "approval",
        gettext_lazy("Those that wait for approval are sent as they were accepted. Read them first."),
    ),
    "reject": BulkAction(
        reject_all,
        gettext_lazy("Reject"),
        "cancel",
        gettext_lazy("Those that wait for approval are cancelled, and their quota is refunded."),
        is_danger=True,
    ),
}
ALL_ACTIONS = {**APPROVAL_ACTIONS, **ACTIONS}


def actions_for(request: HttpRequest) -> Mapping[str, BulkAction]:
    """Return the actions of a person; owners decide about emails that wait for approval, if there are any."""
    return ALL_ACTIONS if has_held_emails(request) and is_owner(request) else ACTIONS


def cancel_once(email: Email) -> None:
    """Cancel an email for a person, which is audited. Raises the errors of cancel_email."""
    with transaction.atomic():
        cancel_email(email, limits=NO_LIMITS)
        record_action(email.workspace, AuditAction.EMAIL_CANCELLED, about=email.id)


def addresses_of(emails: Sequence[Email]) -> list[str]:
    """Return the addresses of all recipients, each once."""
    rows = Recipient.objects.filter(email__in=[email.id for email in emails]).order_by("email_id", "position")
    return list({normalize_address(address): address for address in rows.values_list("address", flat=True)}.values())


def describe_selection(action: str, emails: Sequence[Email]) -> str:
    """Return the number of emails of a confirmation, or of addresses, as text."""
    count = len(addresses_of(emails)) if action == "suppress" else len(emails)
    text = (
        ngettext("%(count)s address", "%(count)s addresses", count)
        if action == "suppress"
        else ngettext("%(count)s email", "%(count)s emails", count)
    )
    return text % {"count": count}


def _try_each(request: HttpRequest, emails: Sequence[Email], act: Callable[[Email], object]) -> int:
    """Run an action for each email; return how many it accepted, and show each reason for refusals once."""
    refusals: Counter[str] = Counter()
    for email in emails:
        try:
            act(email)
        except Problem as problem:
            refusals[problem_message(problem)] += 1
    for reason, count in refusals.items():
        text = ngettext("%(count)s email: %(reason)s", "%(count)s emails: %(reason)s", count)
        messages.error(request, text % {"count": count, "reason": reason})
    return len(emails) - refusals.total()


def _show(request: HttpRequest, text: str, count: int) -> None:
    if count:
        messages.success(request, text % {"count": count})
