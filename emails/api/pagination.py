"""Pagination of the email list: exact totals, from the counters where possible."""

from typing import Any

from django.db import connection
from django.db.models import QuerySet
from rest_framework.request import Request

from api.pagination import PagePagination
from emails.listing.counts import LIVE_AND_TEST, count_by_status
from emails.models import Email
from emails.states import EmailStatus


class EmailPagination(PagePagination):
    """Totals come from the counters; with any other filter than the status, the emails are counted."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        self.read_query(request)
        values = view.filterset.form.cleaned_data
        if values["search"]:
            return self._paginate_search(queryset)
        # The counters know no limits of keys.
        if view.limits.restricts_emails or any(values[name] for name in ("event", "tag", "from", "to")):
            self.total = queryset.order_by().count()
        else:
            statuses = values["status"] or EmailStatus.values
            self.total = count_by_status(view.workspace, statuses=statuses, tests=_tests(view, values["test"]))
        return list(queryset[self.slice]) if self.start < self.total else []

    def _paginate_search(self, emails: QuerySet[Email]) -> list[Email]:
        """Count the matches and cut the page in one pass; two passes would read every match twice."""
        sql, parameters = emails.order_by().values("id", "created_at").query.sql_with_params()
        page = f"""
            WITH matches AS MATERIALIZED ({sql})
            SELECT (SELECT count(*) FROM matches),
                   ARRAY(SELECT id FROM matches ORDER BY created_at DESC, id DESC OFFSET %s LIMIT %s)
        """  # noqa: S608 - the inner statement is the ORM's own
        with connection.cursor() as cursor:
            cursor.execute(page, [*parameters, self.start, self.limit])
            self.total, ids = cursor.fetchone()
        return list(emails.filter(id__in=ids)) if ids else []


def _tests(view: Any, chosen: str | None) -> list[bool]:
    """Return whether live and test emails are listed: a test key reads test emails only."""
    allowed = [True] if view.limits.is_test else LIVE_AND_TEST
    return [is_test for is_test in allowed if not chosen or is_test == (chosen == "true")]
