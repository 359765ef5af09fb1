"""Query strings and ids that no page links to: no page of either site fails, whatever a parameter has."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

from django.contrib import admin
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
READING = ("get", "getlist", "__getitem__")


@contextmanager
def recorded_names() -> Iterator[set[str]]:
    """Yield the names of the parameters that are read meanwhile."""
    names: set[str] = set()
    originals = {method: getattr(QueryDict, method) for method in READING}

    def recording(original: Any) -> Any:
        def read(query: QueryDict, name: str, *arguments: Any, **named: Any) -> Any:
            names.add(name)
            return original(query, name, *arguments, **named)

        return read

    try:
        for method, original in originals.items():
            setattr(QueryDict, method, recording(original))
        yield names
    finally:
        for method, original in originals.items():
            setattr(QueryDict, method, original)


def queries(names: set[str], filters: Sequence[str]) -> Iterator[str]:
    """Yield query strings: each hostile value in all parameters, and in each of them alone."""
    for value in HOSTILE:
        encoded = value.encode("utf-8", "surrogatepass")
        yield urlencode(dict.fromkeys(sorted(names), encoded))
        yield from (urlencode({name: encoded}) for name in sorted({*names, *filters}))


def failures(client: Client, paths: Mapping[str, Sequence[str]]) -> list[tuple[str, str, str]]:
    """Return the requests that fail. paths: of pages, with further parameters of each."""
    failed = []
    for path, filters in paths.items():
        with recorded_names() as names:
            client.get(path)
        for query in queries(names | set(OF_LISTS if filters else ()), filters):
            try:
                response = client.get(path, QUERY_STRING=query)
                error = "" if response.status_code < 500 else str(response.status_code)
            except Exception as raised:  # noqa: BLE001 - all pages are tried
                error = repr(raised)
            if error:
                failed.append((path, query[:80], error[:120]))
    return failed


def paths_of_staff() -> dict[str, list[str]]:
    """Return the paths of the staff admin, with the filters of lists."""
    found: dict[str, list[str]] = {}
    pages = {f"{model._meta.app_label}_{model._meta.model_name}": page for model, page in admin.site._registry.items()}
    for name, route in routes(admin.site.get_urls(), "/admin/").items():
        page = pages.get(name.rpartition("_")[0])
        if name in ENDING or "(?P" in route:
            continue
        if "<" in route:
            instance = page and page.model._default_manager.first()
            if instance is None:
                continue
            for placeholder in ("<path:object_id>", "<str:object_id>", "<id>"):
                route = route.replace(placeholder, str(admin_quote(instance.pk)))  # noqa: PLW2901
        is_list = page is not None and name.endswith("_changelist")
        found[route] = [f"{one}__exact" for one in page.list_filter if isinstance(one, str)] if is_list else []
    return found


def test_no_page_of_the_dashboard_fails(alice):
    objects = fill_workspace(alice)
    paths = [
        route.replace("<str:object_id>", str(objects[name.rpartition("_")[0]].pk) if "<" in route else "")
        for name, route in ROUTES.items()
        if name not in ENDING
    ]
    assert failures(signed_in(alice.owner), dict.fromkeys(paths, ())) == []


def test_no_page_of_visitors_fails(db):
    paths = [
        *(route for route in ROUTES.values() if "<" not in route),
        "/admin/login/",
        "/docs/search",
        "/docs/nothing",
    ]
    assert failures(Client(), dict.fromkeys(paths, ())) == []


def test_no_page_of_staff_fails(alice, staff):
    fill_workspace(alice)
    paths = paths_of_staff()
    assert {"/admin/search/", "/admin/workspaces/user/", "/admin/queue/"} <= paths.keys()
    assert failures(staff, paths) == []


def test_no_id_makes_a_page_fail(alice, staff):
    fill_workspace(alice)
    of_staff = routes(admin.site.get_urls(), "/admin/")
    wrong = []
    for client, patterns in ((signed_in(alice.owner), ROUTES), (staff, of_staff)):
        for route in patterns.values():
            start, opening, rest = route.partition("<")
            for text in IDS if opening and "(?P" not in route else ():
                path = start + quote(text.encode("utf-8", "surrogatepass"), safe="") + rest.partition(">")[2]
                if client.get(path).status_code >= 500:
                    wrong.append(path[:120])
    assert wrong == []
