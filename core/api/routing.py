"""URL routing: every path works with and without a trailing slash, without a redirect."""

from collections.abc import Callable
from typing import Any

from django.urls import URLPattern, re_path
from rest_framework.routers import SimpleRouter


class Router(SimpleRouter):
    """DRF's router with an optional trailing slash."""

    def __init__(self) -> None:
        super().__init__(trailing_slash=False)
        self.trailing_slash = "/?"


def fixed_path(route: str, view: Callable[..., Any], *, name: str) -> URLPattern:
    """Return the URL pattern of a path without arguments, such as `me`."""
    return re_path(rf"^{route}/?$", view, name=name)
