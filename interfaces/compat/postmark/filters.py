"""Filters of Postmark's lists: messages, bounces and suppressions. A filter that does not exist here is refused."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db.models import Exists, OuterRef, Q, QuerySet
from rest_framework.request import Request

from core.api.fields import DateTimeBoundField
from core.delivery.bounces.reasons import FailureReason
from core.lib.email_addresses import normalize_search
from emails.listing.search import filter_by_id, filter_by_text
from emails.models import Email, Recipient
from emails.states import EmailStatus
from events.kinds import EventKind
from events.models import Event
from interfaces.compat.drafts import read_choice, validate_field
from interfaces.compat.errors import invalid_field
from interfaces.compat.postmark.names import read_id
from interfaces.compat.postmark.webhook_format import BOUNCE_TYPE_NAMES, event_bounce_type
from suppressions.models import Suppression, suppression_key, suppression_keys_sql

Filters = Mapping[str, Any]
# The newest emails, which filters without an index search. Two searches, for the page and for the total, took 0.4 to
# 2.2 s together on two cores that other programs used fully.
MAX_SEARCHED = 100_000
# Parameters of every list.
NOT_FILTERS = frozenset({"count", "offset"})
METADATA = "metadata_"
DATES = {"fromdate": DateTimeBoundField(is_end=False), "todate": DateTimeBoundField(is_end=True)}
# Some clients write the month and the day without a leading zero.
SHORT_DATE = re.compile(r"([0-9]{4})-([0-9]{1,2})-([0-9]{1,2})")
BOOLEANS = {"true": True, "false": False, "1": True, "0": False}
# Statuses of messages, in any case; an unknown one has no messages.
QUEUED = (EmailStatus.QUEUED, EmailStatus.SCHEDULED)
# https://postmarkapp.com/developer/api/messages-api
STATUS_FILTERS: dict[str, Q] = {
    "queued": Q(status__in=QUEUED),
    "sent": ~Q(status__in=QUEUED),
    "processed": ~Q(status__in=QUEUED),
}
# Reason and origin of a suppression.
# https://postmarkapp.com/developer/api/suppressions-api
SUPPRESSION_REASONS = {
    Suppression.Reason.BOUNCE: ("HardBounce", "Recipient"),
    Suppression.Reason.COMPLAINT: ("SpamComplaint", "Recipient"),
    Suppression.Reason.UNSUBSCRIBE: ("ManualSuppression", "Recipient"),
    Suppression.Reason.MANUAL: ("ManualSuppression", "Customer"),
}
REASONS = ("HardBounce", "SpamComplaint", "ManualSuppression")
ORIGINS = ("Recipient", "Customer", "Admin")


def _by_text(emails: QuerySet[Email], text: str) -> QuerySet[Email]:
    return filter_by_text(emails, normalize_search(text))


def _by_bounce_type(emails: QuerySet[Email], name: str) -> QuerySet[Email]:
    """Filter by the type of a bounce; one without a known reason is of the type that has no reasons of its own."""
    reasons = [reason for reason in FailureReason if event_bounce_type("bounced", reason)[0] == name]
    condition = Q(payload__reason__in=reasons)
    if event_bounce_type("bounced", "")[0] == name:
        condition |= Q(payload__reason=None) | ~Q(payload__has_key="reason")
    return emails.filter(Exists(Event.objects.filter(condition, email=OuterRef("pk"), kind=EventKind.BOUNCED)))


def _by_inactivity(emails: QuerySet[Email], is_inactive: bool) -> QuerySet[Email]:  # noqa: FBT001 - the value of a filter
    """Filter by whether a recipient that bounced is suppressed now."""
    keys = suppression_keys_sql(OuterRef("address"), stream=OuterRef("email__stream"))
    suppressed = Suppression.objects.filter(workspace=OuterRef("email__workspace"), address_key__in=keys)
    bounced = Recipient.objects.filter(email=OuterRef("pk"), state=EmailStatus.BOUNCED)
    return emails.filter(
        Exists(bounced.filter(Exists(suppressed))) if is_inactive else ~Exists(bounced.filter(Exists(suppressed)))
    )


EmailFilter = Callable[[QuerySet[Email], Any], QuerySet[Email]]
SHARED: dict[str, EmailFilter] = {
    "tag": lambda emails, tag: emails.filter(tags__contains=[tag]),
    "fromdate": lambda emails, start: emails.filter(created_at__gte=start),
    "todate": lambda emails, end: emails.filter(created_at__lte=end),
    "messageid": filter_by_id,
    "messagestream": lambda emails, stream: emails.filter(stream=read_id(stream)),
}
MESSAGES: dict[str, EmailFilter] = {
    **SHARED,
    "recipient": _by_text,
    "subject": _by_text,
    "fromemail": lambda emails, text: emails.filter(sender__icontains=text),
    "status": lambda emails, status: emails.filter(STATUS_FILTERS.get(status.lower(), Q(pk__in=()))),
    "metadata": lambda emails, members: emails.filter(metadata__contains=members),
}
BOUNCES: dict[str, EmailFilter] = {
    **SHARED,
    "emailfilter": _by_text,
    "type": _by_bounce_type,
    "inactive": _by_inactivity,
}
UNINDEXED = frozenset({"tag", "messagestream", "fromemail", "metadata", "type", "inactive"})
SUPPRESSIONS = ("suppressionreason", "origin", "fromdate", "todate", "emailaddress")


def read_filters(request: Request, *, known: Iterable[str]) -> dict[str, Any]:
    """Return the filters of a query by their names in lower case; metadata as an object.

    Raises InvalidFields for a filter that the list does not have, and ValidationError.
    """
    filters: dict[str, Any] = {}
    for given, text in request.query_params.dict().items():
        name = given.lower()
        if not text or name in NOT_FILTERS:
            continue
        if name.startswith(METADATA) and "metadata" in known:
            filters.setdefault("metadata", {})[given[len(METADATA) :]] = text
        elif name in known:
            filters[name] = _value(name, text)
        else:
            raise invalid_field(given[:100], f"This filter is not supported here. Use some of {_listed(known)}.")
    return filters


def filter_emails(emails: QuerySet[Email], filters: Filters, *, known: Mapping[str, EmailFilter]) -> QuerySet[Email]:
    """Filter emails. Filters without an index search the newest MAX_SEARCHED only."""
    if filters.keys() & UNINDEXED:
        newest = emails.order_by("-created_at", "-id").values("id")[:MAX_SEARCHED]
        emails = emails.filter(id__in=newest)
    for name, value in filters.items():
        emails = known[name](emails, value)
    return emails


def filter_suppressions(rows: QuerySet[Suppression], filters: Filters, *, stream: str) -> QuerySet[Suppression]:
    """Filter the suppressions of a stream and of the workspace."""
    wanted = {"reason": filters.get("suppressionreason"), "origin": filters.get("origin")}
    reasons = [
        ours
        for ours, (reason, origin) in SUPPRESSION_REASONS.items()
        if wanted["reason"] in {None, reason} and wanted["origin"] in {None, origin}
    ]
    rows = rows.filter(reason__in=reasons)
    if "emailaddress" in filters:
        keys = [suppression_key(filters["emailaddress"], stream=name) for name in ("", stream)]
        rows = rows.filter(address_key__in=keys)
    bounds = {"created_at__gte": filters.get("fromdate"), "created_at__lte": filters.get("todate")}
    return rows.filter(**{lookup: time for lookup, time in bounds.items() if time is not None})


def read_date(name: str, text: str) -> Any:
    """Return one end of a range as a time. Raises ValidationError."""
    short = SHORT_DATE.fullmatch(text)
    padded = f"{short[1]}-{short[2]:0>2}-{short[3]:0>2}" if short else text
    return validate_field(DATES[name], padded, name=name)


def _value(name: str, text: str) -> Any:
    """Return the value of a filter. Raises InvalidFields and ValidationError."""
    if name in DATES:
        return read_date(name, text)
    if name in CHOICES:
        return read_choice(text.lower(), CHOICES[name], field=name)
    return text


def _listed(known: Iterable[str]) -> str:
    return ", ".join(f"{METADATA}<name>" if name == "metadata" else name for name in known)


def _by_lower_case(names: Iterable[str]) -> dict[str, Any]:
    return {name.lower(): name for name in names}


CHOICES: dict[str, Mapping[str, Any]] = {
    "inactive": BOOLEANS,
    "type": _by_lower_case(BOUNCE_TYPE_NAMES),
    "suppressionreason": _by_lower_case(REASONS),
    "origin": _by_lower_case(ORIGINS),
}
