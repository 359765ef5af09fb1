"""The page of a recipient: everything sent to an address, its suppressions and its replies (docs/decisions/0261)."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.db.models import QuerySet, Value
from django.db.models.functions import Lower
from django.http import HttpRequest
from django.urls import reverse
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from console.dashboard.ui.listing import PER_PAGE, ListPage, page_number, query_without_page, split_page
from core.lib.email_addresses import InvalidAddress, normalize_search, parse_recipient, read_stored_address
from core.workspaces.models import Workspace
from emails.models import Email, Recipient
from receiving.models import ReceivedEmail
from streams.models import Stream
from suppressions.erased import all_keys
from suppressions.models import Suppression

# Emails to the address in all workspaces; the newest MAX_EMAILS of the workspace are shown and counted.
MAX_READ = 20_000
MAX_EMAILS = 1_000
MAX_REPLIES = 10
MAX_HITS = 5
TIMES = {"delivered": "delivered_at", "opened": "opened_at", "clicked": "clicked_at", "bounced": "bounced_at"}


@dataclass(frozen=True)
class RecipientCount:
    """A number of a recipient's emails, of which an event is known. share: in percent of all, None for the total."""

    label: str
    count: int
    share: float | None
    tone: str


@dataclass(frozen=True)
class RecipientHit:
    """A recipient that a search found, with the address of its page."""

    address: str
    url: str


def parse_recipient_address(text: str) -> str:
    """Return the addr-spec of an address; empty for any other text."""
    try:
        return parse_recipient(text).spec
    except InvalidAddress:
        return ""


def recipient_url(address: str) -> str:
    return f"{reverse('dashboard:emails_email_recipient')}?{urlencode({'address': address})}"


def find_recipients(search: str, emails: Sequence[Email]) -> list[RecipientHit]:
    """Return the recipients to show above the hits of a search: the address itself, or those that contain the text.

    emails: a page of hits.
    """
    if not search.strip():
        return []
    if address := parse_recipient_address(search):
        return [RecipientHit(address, recipient_url(address))]
    text = normalize_search(search.strip())
    specs = (read_stored_address(written).spec for email in emails for written in (*email.to, *email.cc, *email.bcc))
    found = list(dict.fromkeys(spec for spec in specs if text in spec.lower()))
    return [RecipientHit(spec, recipient_url(spec)) for spec in found] if len(found) <= MAX_HITS else []


def describe_recipient(
    request: HttpRequest, workspace: Workspace, address: str, *, streams: Sequence[Stream]
) -> dict[str, Any]:
    """Return the context of the page of an address. streams: the workspace's; none if it has only `main`."""
    recipients = list(recipients_of(workspace, address)[: MAX_EMAILS + 1])
    suppressions = suppressions_of(workspace, address)
    has_more, recipients = len(recipients) > MAX_EMAILS, recipients[:MAX_EMAILS]
    return {
        "address": address,
        "listing": _list_page(request, workspace, recipients),
        "counts": _counts(recipients),
        "note": _("The newest %(count)s emails.") % {"count": number_format(MAX_EMAILS, force_grouping=True)}
        if has_more
        else "",
        "suppressions": suppressions,
        "is_blocked": any(not suppression.stream for suppression in suppressions),
        "stream_names": {"": _("All streams") if streams else _("All emails"), **{s.slug: s.name for s in streams}},
        "replies": _replies(workspace, [recipient.id for recipient in recipients]),
    }


def recipients_of(workspace: Workspace, address: str) -> QuerySet[Recipient]:
    """Return the recipients with an address, ignoring case, newest first."""
    key = Recipient.objects.alias(key=Lower("address")).filter(key=Lower(Value(address)))
    newest = key.order_by("-email_id").values("id")[:MAX_READ]
    return Recipient.objects.filter(id__in=newest, email__workspace=workspace).order_by("-email_id", "position")


def suppressions_of(workspace: Workspace, address: str) -> list[Suppression]:
    """Return the suppressions of an address: of the workspace first, then those of its streams."""
    slugs = Stream.objects.filter(workspace=workspace).values_list("slug", flat=True)
    keys = [key for slug in ("", *slugs) for key in all_keys(address, stream=slug)]
    return list(Suppression.objects.filter(workspace=workspace, address_key__in=keys).order_by("stream"))


def _list_page(request: HttpRequest, workspace: Workspace, recipients: Sequence[Recipient]) -> ListPage:
    number = page_number(request)
    shown, has_next = split_page(list(recipients[(number - 1) * PER_PAGE :]))
    emails = Email.objects.filter(workspace=workspace).only("subject", "sender", "created_at", "stream", "is_test")
    by_id = emails.in_bulk([recipient.email_id for recipient in shown])
    rows = [(recipient, by_id[recipient.email_id]) for recipient in shown if recipient.email_id in by_id]
    # Ids have the order of seconds only.
    rows.sort(key=lambda row: row[1].created_at, reverse=True)
    return ListPage(rows, number, has_next, query_without_page(request), total=len(recipients))


def _counts(recipients: Collection[Recipient]) -> list[RecipientCount]:
    labels = {"delivered": _("Delivered"), "opened": _("Opened"), "clicked": _("Clicked"), "bounced": _("Bounced")}
    total = len(recipients)
    counts = {name: sum(one.has_reached(field) for one in recipients) for name, field in TIMES.items()}
    shares = (RecipientCount(labels[name], count, 100 * count / max(total, 1), name) for name, count in counts.items())
    return [RecipientCount(_("Emails"), total, None, "all"), *shares]


def _replies(workspace: Workspace, recipient_ids: Collection[str]) -> list[ReceivedEmail]:
    rows = ReceivedEmail.objects.filter(workspace=workspace, reply_recipient_id__in=recipient_ids)
    return list(
        rows.only("subject", "sender", "received_at", "is_from_recipient").order_by("-received_at")[:MAX_REPLIES]
    )
