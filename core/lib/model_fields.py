"""Model fields: of every public id, with the number that stands for it in other APIs; of times that may be unknown."""

import functools
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from django.db import models

from core.lib import ids

if TYPE_CHECKING:
    StringField = models.Field[str, str]
    DateTimeField = models.DateTimeField[datetime | str | None, datetime | None]
else:
    StringField, DateTimeField = models.Field, models.DateTimeField


# The time in the database of what happened at a time that is not stored.
UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)


class IdNumber(models.Func):
    """The result of `core.lib.ids.id_number` in SQL."""

    template = (
        f"((('x' || right(replace((%(expressions)s)::text, '-', ''), 14))::bit(56)::bigint) & {ids.SAFE_INTEGER})"
    )
    arity = 1
    output_field = models.BigIntegerField()


class IdField(StringField):
    """An id: a prefixed string in Python and on the wire, a uuid in the database.

    The default is a new id, or None if the column is nullable.
    """

    description = "An opaque id"

    def __init__(self, prefix: str = "", **options: Any) -> None:
        self.prefix = prefix
        options.setdefault("default", None if options.get("null") else functools.partial(ids.new_id, prefix))
        options.setdefault("editable", False)
        super().__init__(**options)

    def deconstruct(self) -> Any:
        name, path, args, options = super().deconstruct()
        options.pop("default", None)
        return name, path, [self.prefix, *args], options

    def get_internal_type(self) -> str:
        return "UUIDField"

    def from_db_value(self, value: uuid.UUID | None, *_: object) -> str | None:
        return None if value is None else ids.from_uuid(value, prefix=self.prefix)

    def to_python(self, value: Any) -> Any:
        return ids.from_uuid(value, prefix=self.prefix) if isinstance(value, uuid.UUID) else value

    def get_prep_value(self, value: Any) -> Any:
        """Return the uuid of an id in either spelling. Raises InvalidId, a ValueError, which DRF turns into a 404."""
        if value is None or isinstance(value, uuid.UUID) or hasattr(value, "as_sql"):
            return value
        return ids.to_uuid(ids.from_any_spelling(str(value), prefix=self.prefix), prefix=self.prefix)


class KnownTimeField(DateTimeField):
    """A nullable time that is None in Python if it is not known, even if the database has UNKNOWN_TIME.

    SQL can ask with IS NULL whether it happened (docs/decisions/0376).
    """

    def deconstruct(self) -> Any:
        # Migrations have the column of any time.
        name, _, args, options = super().deconstruct()
        return name, "django.db.models.DateTimeField", args, options

    def from_db_value(self, value: datetime | None, *_: object) -> datetime | None:
        return None if value == UNKNOWN_TIME else value
