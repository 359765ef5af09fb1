"""Query strings and ids that no page links to: no page of either site fails, whatever a parameter has."""

import sys
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

from django.contrib import admin
from django.contrib.admin import ModelAdmin
from django.contrib.admin.utils import quote as admin_quote
from django.http import QueryDict
from django.test import Client

from tests.conftest import IS_LONG_RUN
from tests.console.dashboard.conftest import signed_in
from tests.console.dashboard.routes import ROUTES, routes
from tests.console.dashboard.scenario import fill_workspace

# A path, an empty text, a digit that int() does not read, and a page that does not exist.
HOSTILE = ["a/b", "", "²", "-1"]
IDS = ["²", "0" * 22, "_00"]
if IS_LONG_RUN:
    HOSTILE += [
        "2026-02-30", "0" * 22, "..", " ", "0", "9" * 5000, "1e9", "nan", "\u0661", "\0", "\ud800",
        "\r\nX-A: b", "%", "a" * 9000, "0000-00-00", "9999-12-31", "2026-11-29T25:00", "z" * 22, "inb_" + "0" * 22,
        "{}", "[]", "{{ x }}", "1.5", "\\", "'", "<b>", "*", "//evil.example/", "?", "#", "a,b", "@", "True",
    ]  # fmt: skip
    IDS += ["a", "9" * 5000, "a b", "%2F", "\ud800", "<b>", "em_" + "z" * 22]
# Parameters of Django's lists and forms that it reads in another way than the recorded ones.
OF_LISTS = ("e", "o", "p", "q", "all", "_popup", "_to_field", "_changelist_filters", "_facets")
# Signs out.
ENDING = {"logout"}
ALIKE = ("_history", "_delete")
READING = ("get", "getlist", "__getitem__")
# By the name of a parameter: the functions that read it, each with its caller, since a helper may read for several.
Readers = dict[str, set[Hashable]]


@contextmanager
def recorded_readers() -> Iterator[Readers]:
    """Yield the parameters that are read meanwhile, with the functions that read them."""
    readers: Readers = {}
    originals = {method: getattr(QueryDict, method) for method in READING}

    def recording(original: Any) -> Any:
        def read(query: QueryDict, name: str, *arguments: Any, **named: Any) -> Any:
            frame = sys._getframe(1)
            readers.setdefault(name, set()).add((frame.f_code, frame.f_back and frame.f_back.f_code))
            return original(query, name, *arguments, **named)

        return read

    try:
        for method, original in originals.items():
            setattr(QueryDict, method, recording(original))
        yield readers
    finally:
        for method, original in originals.items():
            setattr(QueryDict, method, original)


def queries(together: Iterable[str], alone: Collection[str]) -> Iterator[str]:
    """Yield query strings: all parameters with hostile values in turn, and some of them alone.

    together: their values change places, so that each has each value, unless none of them needs to be alone.
    alone: with one value each, and with all of them in long runs.
    """
    values = [value.encode("utf-8", "surrogatepass") for value in HOSTILE]
    names = sorted(together)
    for turn in range(len(values) if alone else 1):
        yield urlencode({name: values[(place + turn) % len(values)] for place, name in enumerate(names)})
    for place, name in enumerate(sorted(alone)):
        for value in values if IS_LONG_RUN else [values[place % len(values)]]:
            yield urlencode({name: value})


def failures(client: Client, pages: Mapping[str, Readers]) -> list[tuple[str, str, str]]:
    """Return the requests that fail. pages: their paths, with parameters that are read in another way.

    A parameter is tried alone on the first page of each function that reads it, and on all pages in long runs.
    """
    failed = []
    seen: set[tuple[str, Hashable]] = set()
    for path, others in pages.items():
        with recorded_readers() as recorded:
            client.get(path)
        readers = recorded | others
        pairs = {(name, reader) for name, found in readers.items() for reader in found}
        alone = {name for name, _ in (pairs if IS_LONG_RUN else pairs - seen)}
        seen |= pairs
        # A filter of Django's lists that is refused ends the request before other parameters are read.
        for query in queries((name for name in readers if "__" not in name), alone):
            try:
                response = client.get(path, QUERY_STRING=query)
                error = "" if response.status_code < 500 else str(response.status_code)
            except Exception as raised:  # noqa: BLE001 - all pages are tried
                error = repr(raised)
            if error:
                failed.append((path, query[:80], error[:120]))
    return failed


def staff_routes() -> dict[str, str]:
    """Return the routes of the staff admin; in quick runs, those of histories and deletions for one model.

    They are alike for all models.
    """
    found = routes(admin.site.get_urls(), "/admin/")
    if IS_LONG_RUN:
        return found
    others = {name for name in found if name.endswith(ALIKE) and not name.startswith("workspaces_membership_")}
    return {name: route for name, route in found.items() if name not in others}


def pages_of_staff() -> dict[str, Readers]:
    """Return the paths of the staff admin, with the parameters and filters of lists."""
    found: dict[str, Readers] = {}
    pages = {f"{model._meta.app_label}_{model._meta.model_name}": page for model, page in admin.site._registry.items()}
    for name, route in staff_routes().items():
        page = pages.get(name.rpartition("_")[0])
        if name in ENDING or "(?P" in route:
            continue
        if "<" in route:
            instance = page and page.model._default_manager.first()
            if instance is None:
                continue
            for placeholder in ("<path:object_id>", "<str:object_id>", "<id>"):
                route = route.replace(placeholder, str(admin_quote(instance.pk)))  # noqa: PLW2901
        found[route] = {}
        if page is not None and name.endswith("_changelist"):
            # Filters are made of the fields of a model.
            filters = [f"{one}__exact" for one in page.list_filter if isinstance(one, str)]
            found[route] = {name: {ModelAdmin} for name in OF_LISTS} | {name: {page.model} for name in filters}
    return found


def test_no_page_of_the_dashboard_fails(alice):
    objects = fill_workspace(alice)
    paths = [
        route.replace("<str:object_id>", str(objects[name.rpartition("_")[0]].pk) if "<" in route else "")
        for name, route in ROUTES.items()
        if name not in ENDING
    ]
    assert failures(signed_in(alice.owner), {path: {} for path in paths}) == []


def test_no_page_of_visitors_fails(db):
    paths = [
        *(route for route in ROUTES.values() if "<" not in route),
        "/admin/login/",
        "/docs/search",
        "/docs/nothing",
    ]
    assert failures(Client(), {path: {} for path in paths}) == []


def test_no_page_of_staff_fails(alice, staff):
    fill_workspace(alice)
    pages = pages_of_staff()
    assert {"/admin/search/", "/admin/workspaces/user/", "/admin/queue/"} <= pages.keys()
    assert failures(staff, pages) == []


def test_no_id_makes_a_page_fail(alice, staff):
    fill_workspace(alice)
    wrong = []
    for client, patterns in ((signed_in(alice.owner), ROUTES), (staff, staff_routes())):
        for route in patterns.values():
            start, opening, rest = route.partition("<")
            for text in IDS if opening and "(?P" not in route else ():
                path = start + quote(text.encode("utf-8", "surrogatepass"), safe="") + rest.partition(">")[2]
                if client.get(path).status_code >= 500:
                    wrong.append(path[:120])
    assert wrong == []
