"""Endpoints of a provider's API: those in the paths of its dialect, and those that the dialect declares as absent."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from django.urls import URLPattern

# Parameters that are the id of the object in the path.
ID_NAMES = re.compile("<(?:str:)?(?:pk|number|reference)>")
PARAMETER = re.compile(r"<(?:str:)?(\w+)>")
NO_NOTE = "\N{EN DASH}"


@dataclass(frozen=True)
class Endpoint:
    """An endpoint of a dialect.

    method, path: as in `GET /emails/:id`.
    note: the difference, or the reason of the absence.
    """

    method: str
    path: str
    note: str
    is_absent: bool

    @property
    def state(self) -> str:
        return "absent" if self.is_absent else "differs" if self.note else "full"


@cache
def list_endpoints(dialect: str) -> tuple[Endpoint, ...]:
    """Return the endpoints that a dialect has, in the order of its paths, and then the absent ones by path."""
    unsupported = import_module(f"interfaces.compat.{dialect}.unsupported")
    available = [
        pair for pattern in import_module(f"interfaces.compat.{dialect}.urls").urlpatterns for pair in _methods(pattern)
    ]
    absent = [(method, path) for methods, paths in unsupported.ABSENT.items() for path in paths for method in methods]
    return tuple(
        Endpoint(method, path, unsupported.NOTES.get(f"{method} {path}", ""), is_absent)
        for pairs, is_absent in ((available, False), (sorted(absent, key=lambda pair: pair[1]), True))
        for method, path in pairs
    )


def first_segments(dialect: str) -> set[str]:
    """Return the first segments of a dialect's paths, in lower case."""
    return {endpoint.path.split("/")[1].lower() for endpoint in list_endpoints(dialect)}


def endpoint_table(dialect: str) -> str:
    """Return the table of docs/migrate/<dialect>.md in Markdown."""
    rows = [
        f"| `{endpoint.method} {endpoint.path}` | {endpoint.state} | {endpoint.note or NO_NOTE} |\n"
        for endpoint in list_endpoints(dialect)
    ]
    return "".join(["| endpoint | support | note |\n|---|---|---|\n", *rows])


def _methods(pattern: URLPattern) -> Iterator[tuple[str, str]]:
    """Yield method and path of the actions of a pattern. The name of a pattern in another syntax is its path."""
    path = PARAMETER.sub(r":\1", ID_NAMES.sub(":id", pattern.name or str(pattern.pattern)))
    for method, action in pattern.callback.actions.items():  # type: ignore[attr-defined]  # of DRF
        # DRF adds HEAD with the first request.
        if action != "absent" and method != "head":
            yield method.upper(), f"/{path}"
