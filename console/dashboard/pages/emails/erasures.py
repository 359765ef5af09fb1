"""Erasures: the confirmation and the receipt of each (docs/decisions/0353)."""

from collections.abc import Mapping
from typing import Any, TypeVar

from django.http import Http404, HttpRequest
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.auth.current_workspace import current_workspace, is_owner
from console.dashboard.pages.emails.recipient_history import recipient_url
from console.dashboard.ui.confirm import Confirmation
from console.privacy.models import Erasure, SubjectExport
from core.lib.ids import is_id

P = TypeVar("P", Erasure, SubjectExport)

# Labels that erasures and exports share.
RECORDS: dict[str, str | Promise] = {
    "emails": gettext_lazy("Sent emails"),
    "receivedEmails": gettext_lazy("Received emails"),
    "events": gettext_lazy("Events"),
    "webhookDeliveries": gettext_lazy("Webhook deliveries"),
    "apiRequests": gettext_lazy("API requests"),
    "idempotencyKeys": gettext_lazy("Idempotency keys"),
    "reports": gettext_lazy("Reports of mail servers and providers"),
    "caughtMessages": gettext_lazy("Messages in the inbox"),
}
KINDS: dict[str, str | Promise] = {
    **RECORDS,
    "auditEntries": gettext_lazy("Audit entries, blanked"),
    "subjectExports": gettext_lazy("Exports of the person"),
    "suppressions": gettext_lazy("Suppressions, hashed"),
}
KEPT: dict[str, str | Promise] = {
    "suppression": gettext_lazy(
        "A keyed hash of a suppressed address stays, so that an import does not mail the person again."
    ),
    "counters": gettext_lazy("Analytics, usage and reputation are numbers without addresses."),
    "otherContent": gettext_lazy("The HTML, text and attachments of emails to others are not searched."),
    "accounts": gettext_lazy(
        "Members of the workspace, their invitations and the log of their actions stay while they are members."
    ),
    "configuration": gettext_lazy("Templates, routes, webhooks and blocked senders are settings of the workspace."),
}


def confirm_erasure(address: str) -> Confirmation:
    lead = _(
        "All data of this address is erased: sent and received emails to, from and about it, with their events and "
        "webhook deliveries. This cannot be undone. Its suppressions stay as a hash."
    )
    return Confirmation(lead, _("Erase"), recipient_url(address), about=address, is_danger=True)


def find_request(request: HttpRequest, model: type[P], *, prefix: str) -> P:
    """Return the erasure or export in the query. Raises Http404 for others, and for members who own nothing."""
    if not is_owner(request) or not is_id(request.GET["id"], prefix=prefix):
        raise Http404
    found = model.objects.filter(workspace=current_workspace(request), id=request.GET["id"]).first()
    if found is None:
        raise Http404
    return found


def describe_erasure(erasure: Erasure) -> dict[str, Any]:
    """Return the context of the page of a receipt."""
    return {"erasure": erasure, "counts": labelled_counts(erasure, KINDS), "kept": KEPT.values()}


def labelled_counts(request: Erasure | SubjectExport, kinds: Mapping[str, str | Promise]) -> list[tuple[Any, int]]:
    """Return the label and the number of each kind of record that there is."""
    return [(label, count) for kind, label in kinds.items() if (count := request.counts.get(kind, 0))]
