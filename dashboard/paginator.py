"""Pages of a list that may have millions of rows."""

from django.core.paginator import Paginator
from django.utils.functional import cached_property

MAX_ROWS = 5_000


class CappedPaginator(Paginator):  # type: ignore[type-arg]  # it takes no [] at run time
    """Counts up to MAX_ROWS and shows no more: who looks further back filters or asks the API."""

    template_name = "dashboard/parts/pagination.html"

    @cached_property
    def count(self) -> int:
        return self.object_list[:MAX_ROWS].count()  # type: ignore[attr-defined, no-any-return]

    @property
    def is_capped(self) -> bool:
        return self.count == MAX_ROWS
