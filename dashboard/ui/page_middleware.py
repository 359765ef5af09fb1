"""Django's middleware for people with a browser, passed by for the API, whose callers send a key with each request.

Sessions, tokens against forged forms, who is signed in, and messages were a twentieth of accepting an email.
"""

from typing import Any

from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest
from django.middleware.csrf import CsrfViewMiddleware
from django.utils.deprecation import MiddlewareMixin

API = "/v1/"


class _ForPages(MiddlewareMixin):
    def __call__(self, request: HttpRequest) -> Any:
        return self.get_response(request) if request.path_info.startswith(API) else super().__call__(request)


class PageSessions(_ForPages, SessionMiddleware):
    pass


class PageCsrf(_ForPages, CsrfViewMiddleware):
    pass


class PageUsers(_ForPages, AuthenticationMiddleware):
    pass


class PageMessages(_ForPages, MessageMiddleware):
    pass
