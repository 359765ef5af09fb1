"""Erasures: the confirmation and the receipt of each (docs/decisions/0353)."""

from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from console.dashboard.pages.emails.recipient_history import recipient_url
from console.dashboard.ui.confirm import Confirmation
from console.privacy.models import Erasure
from core.lib.ids import is_id
from core.workspaces.models import Workspace

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


def find_erasure(workspace: Workspace, erasure_id: str) -> Erasure | None:
    rows = Erasure.objects.filter(workspace=workspace)
    return rows.filter(id=erasure_id).first() if is_id(erasure_id, prefix="era_") else None


def describe_erasure(erasure: Erasure) -> dict[str, Any]:
    """Return the context of the page of a receipt."""
    counts = [(label, erasure.counts.get(kind, 0)) for kind, label in KINDS.items()]
    return {"erasure": erasure, "counts": [count for count in counts if count[1]], "kept": KEPT.values()}
