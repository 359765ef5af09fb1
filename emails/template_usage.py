"""The recent use of templates, from an index and with a bound, so that it costs the same for any number of emails."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import connection

from core.lib.ids import to_uuid
from core.workspaces.models import Workspace

PERIOD = timedelta(days=30)
MAX_COUNT = 1000
USAGE = """
SELECT template.id,
       (SELECT created_at FROM emails_email WHERE workspace_id = %(workspace)s AND template_id = template.id
         ORDER BY created_at DESC LIMIT 1),
       (SELECT count(*) FROM (SELECT FROM emails_email WHERE workspace_id = %(workspace)s AND template_id = template.id
                                 AND created_at >= now() - %(period)s LIMIT %(limit)s) counted)
  FROM unnest(%(ids)s::text[]) AS template (id)
"""


@dataclass(frozen=True)
class TemplateUsage:
    """The use of a template.

    last_used_at: the time of the newest email that still exists.
    count: the emails of the last 30 days, at most MAX_COUNT.
    """

    last_used_at: datetime | None
    count: int
    is_more: bool


def read_template_usage(workspace: Workspace, template_ids: Sequence[str]) -> dict[str, TemplateUsage]:
    values: dict[str, Any] = {
        "workspace": to_uuid(workspace.id, prefix="ws_"),
        "ids": list(template_ids),
        "period": PERIOD,
        "limit": MAX_COUNT + 1,
    }
    with connection.cursor() as cursor:
        cursor.execute(USAGE, values)
        return {
            template_id: TemplateUsage(last, min(count, MAX_COUNT), count > MAX_COUNT)
            for template_id, last, count in cursor.fetchall()
        }
