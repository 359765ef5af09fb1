"""Pages of the list of emails: exact totals without counting what the counters know."""

from typing import Any

from django.db import connection
from django.db.models import QuerySet
from rest_framework.request import Request

from analytics import counters
from api.pagination import PagePagination
from emails.models import Email
from emails.states import State


class EmailPagination(PagePagination):
    """Totals come from the tally; those of a search, a tag or a range from the index that finds the rows."""

    def paginate(
        self, emails: QuerySet[Email], request: Request, *, filters: dict[str, Any], workspace_id: str
    ) -> list[Email]:
        self.read(request)
        if filters.get("search"):
            return self._found(emails)
        counted = not any(filters.get(name) for name in ("tag", "from", "to"))
        self.total = _tallied(workspace_id, filters.get("status")) if counted else emails.order_by().count()
        return list(emails[self.slice]) if self.start < self.total else []

    def _found(self, emails: QuerySet[Email]) -> list[Email]:
        """Count and cut in one pass over what matches: two would read every match twice."""
        sql, parameters = emails.order_by().values("id", "created_at").query.sql_with_params()
        page = f"""
            WITH found AS MATERIALIZED ({sql})
            SELECT (SELECT count(*) FROM found),
                   ARRAY(SELECT id FROM found ORDER BY created_at DESC, id DESC OFFSET %s LIMIT %s)
        """  # noqa: S608 - the inner statement is the ORM's own
        with connection.cursor() as cursor:
            cursor.execute(page, [*parameters, self.start, self.limit])
            self.total, ids = cursor.fetchone()
        return list(emails.filter(id__in=ids)) if ids else []


def _tallied(workspace_id: str, statuses: list[str] | None) -> int:
    return counters.total(workspace_id, keys=[f"status.{status}" for status in statuses or State.values])
