"""Pagination of the email list: pages in bounded time; totals from counters, where they exist (docs/decisions/0151)."""

from typing import Any, ClassVar

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import UtcDateTimeField
from core.api.pagination import PagePagination
from core.lib.datetimes import format_datetime
from emails.listing.counts import COUNTED, LIVE_AND_TEST, count_by_status
from emails.listing.filters import filter_values
from emails.listing.pages import MAX_REACH, EmailPage, email_query, read_page
from emails.states import EmailStatus


class EmailPagination(PagePagination):
    """Totals come from the counters; with another filter than the status, they are counted up to a bound."""

    more_members: ClassVar = {
        "totalIsExact": serializers.BooleanField(
            required=False,
            help_text="False if there are, or may be, more emails than `total`, which is then the number of those that "
            "were counted; absent otherwise.",
        ),
        "continueTo": UtcDateTimeField(
            required=False,
            help_text="On the last page that page numbers reach, if there may be older emails: repeat the request with "
            "this time in `to`, and `page` 1. An email of the same millisecond may be in both.",
        ),
    }

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.read_query(request)
        filters = filter_values(view.filterset)
        total = _counted_total(view, filters)
        if total is not None and self.start >= total:
            self.email_page = EmailPage([], total)
            return []
        query = email_query(view.get_queryset(), filters, workspace_id=view.workspace.id, limits=view.limits)
        page = read_page(query, start=min(self.start, MAX_REACH), limit=self.limit, total=total)
        self.email_page = page if self.start < MAX_REACH else self._page_beyond(page)
        return self.email_page.emails

    def get_paginated_response(self, data: Any) -> Response:
        page = self.email_page
        body = {"data": data, "total": page.total, "page": self.page, "limit": self.limit}
        if not page.is_exact:
            body["totalIsExact"] = False
        if page.continue_to:
            body["continueTo"] = format_datetime(page.continue_to)
        return Response(body)

    def _page_beyond(self, page: EmailPage) -> EmailPage:
        """Return the empty page past the end. page: the one at MAX_REACH. Raises ValidationError before the end."""
        if not page.emails:
            return page
        if page.is_exact and page.total <= self.start:
            return EmailPage([], page.total)
        detail = (
            f"Pages reach {MAX_REACH:,} emails. Set `to` to `continueTo` of the last page, and continue with page 1."
        )
        raise serializers.ValidationError({"page": [serializers.ErrorDetail(detail, code="out_of_reach")]})


def _counted_total(view: Any, filters: dict[str, Any]) -> int | None:
    """Return the number of emails if the counters have it. They know no limits of keys."""
    if view.limits.restricts_emails or filters.keys() - COUNTED:
        return None
    # A test key reads test emails only.
    allowed = [True] if view.limits.is_test else LIVE_AND_TEST
    tests = [is_test for is_test in allowed if filters.get("test") in {None, str(is_test).lower()}]
    return count_by_status(view.workspace, statuses=filters.get("status") or EmailStatus.values, tests=tests)
