"""Volume and rates in the lists of the staff admin, from the counters of the last seven days (docs/decisions/0394)."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from django.db.models import BigIntegerField, F, Field, FloatField, Q, QuerySet
from django.db.models.expressions import RawSQL
from django.http import HttpRequest
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _
from unfold.decorators import display

from analytics.reputation.rates import FIRST_DAY, PERIOD_DAYS
from console.dashboard.pages.overview.health import MIN_SENT, bounce_limit, complaint_limit, rate_tone
from console.dashboard.templatetags.percent import percent_text
from core.counters.slices import Dimension
from core.workspaces.admin import ParameterFilter

KEYS = "('rated.sent', 'rated.bounced', 'rated.complained')"
# The counts of a row of workspaces_workspace: folded ones, and those of the last minute.
OF_WORKSPACE = f"""
    SELECT key, count AS n FROM analytics_tallyday
     WHERE workspace_id = workspaces_workspace.id AND day >= ({FIRST_DAY} AT TIME ZONE 'UTC')::date AND key IN {KEYS}
    UNION ALL
    SELECT key, change FROM analytics_tallydelta
     WHERE workspace_id = workspaces_workspace.id AND hour >= {FIRST_DAY} AND key IN {KEYS}
"""  # noqa: S608 - constants
SUM = "coalesce(sum(n) FILTER (WHERE key = 'rated.{name}'), 0)"
VOLUME = f"{SUM.format(name='sent')}::bigint"
# Fewer recipients are not judged.
RATE = (
    f"CASE WHEN {SUM.format(name='sent')} >= {MIN_SENT}"
    f" THEN (100 * {SUM} / {SUM.format(name='sent')})::double precision END"
)


def slice_counts(table: str, dimension: Dimension, column: str) -> str:
    """Return the counts of a row of a table whose emails are a slice of the workspace. column: of the value."""
    slice_ = f"md5({table}.workspace_id || '/{dimension}/' || {table}.{column})::uuid"
    return f"""
        SELECT key, count AS n FROM analytics_slice
         WHERE slice = {slice_} AND day >= ({FIRST_DAY} AT TIME ZONE 'UTC')::date AND key IN {KEYS}
        UNION ALL
        SELECT key, change FROM analytics_tallydelta
         WHERE workspace_id = {table}.workspace_id AND hour >= {FIRST_DAY} AND key IN {KEYS}
           AND slices @> ARRAY[{slice_}]
    """  # noqa: S608 - constants


def add_rates(rows: QuerySet[Any], counts: str) -> QuerySet[Any]:
    """Add sent, the recipients of the last days without the simulator, bounce_percent and complaint_percent.

    counts: SQL for the rows (key, n) of one row. They are read for the rows of a page, or to sort by one of them for
    all rows, always in the statement of the list.
    """

    def of_row(value: str, field: "Field[Any, Any]") -> RawSQL:
        sql = f"(SELECT {value} FROM ({counts}) counted)"  # noqa: S608 - constants
        return RawSQL(sql.replace("%(days)s", str(PERIOD_DAYS)), [], output_field=field)  # noqa: S611 - constants

    found: QuerySet[Any] = rows.annotate(
        sent=of_row(VOLUME, BigIntegerField()),
        bounce_percent=of_row(RATE.format(name="bounced"), FloatField()),
        complaint_percent=of_row(RATE.format(name="complained"), FloatField()),
    )
    return found


def _rate_column(title: str | Promise, name: str, limit: Callable[[], float]) -> Callable[[Any, Any], SafeString]:
    # Rows without a rate are last among the largest.
    @display(description=title, ordering=F(name).asc(nulls_first=True))
    def column(page: Any, row: Any) -> SafeString:
        percent = getattr(row, name)
        tone = "neutral" if percent is None else rate_tone(percent, limit())
        return format_html('<span class="pr-badge pr-{}">{}</span>', tone, percent_text(percent))

    column.__name__ = name
    return column  # type: ignore[no-any-return]


class RateFilter(ParameterFilter):
    """Rows whose bounce or complaint rate is above its limit, or above half of it."""

    title, parameter_name = _("Rates"), "rates"
    choices_by_value: ClassVar = {"above": _("Above a limit"), "near": _("Above half of a limit")}

    def filtered(self, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        share = 1 if value == "above" else 0.5
        return rows.filter(
            Q(bounce_percent__gt=share * bounce_limit()) | Q(complaint_percent__gt=share * complaint_limit())
        )


class RatedAdmin:
    """Adds volume and rates to the list of a ModelAdmin. counts: as in add_rates."""

    counts: ClassVar[str]
    rate_columns: ClassVar[Sequence[str]] = ("volume", "bounce_rate", "complaint_rate")
    bounce_rate = _rate_column(_("Bounce rate"), "bounce_percent", bounce_limit)
    complaint_rate = _rate_column(_("Complaint rate"), "complaint_percent", complaint_limit)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return add_rates(super().get_queryset(request), self.counts)  # type: ignore[misc]  # of the ModelAdmin

    @display(description=_("Recipients, 7 days"), ordering="sent")
    def volume(self, row: Any) -> str:
        return number_format(row.sent, force_grouping=True)
