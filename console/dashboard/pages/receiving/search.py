"""Filters of the list of received emails: those of the API, and one text for all that a person remembers."""

from dataclasses import replace
from typing import Any

from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.translation import gettext as _

from console.dashboard.ui.listing import ListPage, list_page
from core.api.fields import TextField
from core.api.filters import FieldFilter
from core.lib.email_addresses import normalize_search
from receiving.api.filters import MAX_SEARCH_LENGTH, ReceivedFilters
from receiving.models import ReceivedEmail

# No index has the columns of the filters, so they are applied to the newest emails only (docs/decisions/0051).
NEWEST_EMAILS = 20_000


class ReceivedSearchFilter(FieldFilter):
    """A literal substring of the recipient, the sender or the subject, ignoring case."""

    def filter(self, qs: QuerySet[ReceivedEmail], value: Any) -> QuerySet[ReceivedEmail]:
        if not value:
            return qs
        text = normalize_search(value)
        return qs.filter(Q(recipient__icontains=text) | Q(sender__icontains=text) | Q(subject__icontains=text))


class ReceivedListFilters(ReceivedFilters):
    """The filters of the API's list, and a search."""

    search = ReceivedSearchFilter(TextField(allow_blank=True, max_length=MAX_SEARCH_LENGTH))


def find_received(request: HttpRequest, emails: QuerySet[ReceivedEmail], *, filters: dict[str, Any]) -> ListPage:
    """Return a page of a workspace's received emails.

    emails: newest first.
    filters: the values of valid ReceivedListFilters.
    """
    if not filters:
        return list_page(request, emails)
    rows = emails.filter(id__in=emails.values("id")[:NEWEST_EMAILS])
    for name, value in filters.items():
        rows = ReceivedListFilters.base_filters[name].filter(rows, value)
    if not emails.values("id")[NEWEST_EMAILS : NEWEST_EMAILS + 1].exists():
        return list_page(request, rows)
    note = _("Searched the newest %(count)s emails only.")
    count = number_format(NEWEST_EMAILS, force_grouping=True)
    return replace(list_page(request, rows), note=note % {"count": count})
