"""manage.py document_dialects: write the tables of endpoints in docs/migrate/ from the code; a test compares them."""

import re
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from interfaces.compat.apps import DIALECTS
from interfaces.compat.endpoints import endpoint_table

TABLE = re.compile(r"^\| endpoint \|.*\n(?:\|.*\n)*", re.MULTILINE)


class Command(BaseCommand):
    help = "Write the tables of endpoints in docs/migrate/ from the code."
    requires_system_checks = ()

    def handle(self, *args: Any, **options: Any) -> None:
        for dialect in DIALECTS:
            path = settings.BASE_DIR / "docs" / "migrate" / f"{dialect}.md"
            path.write_text(with_table(path.read_text(encoding="utf-8"), dialect), encoding="utf-8")


def with_table(page: str, dialect: str) -> str:
    """Return the Markdown of a page with the current table of endpoints."""
    return TABLE.sub(lambda _: endpoint_table(dialect), page, count=1)
