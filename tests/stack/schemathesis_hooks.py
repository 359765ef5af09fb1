"""Schemathesis hooks with knowledge that the OpenAPI document lacks; used by test_schemathesis."""

import functools
import itertools
import json
import os
import re
import urllib.error
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

# A request may match its schema and still be refused: because of the workspace's data, with a specific code, or by one
# of these rules, which JSON Schema cannot express.
RULES = {
    "duplicate_header": "two names that differ only in case",
    "reserved_header": "names, compared case-insensitively, and prefixes",
    "header_repeated": "the same for headers of a webhook",
    "header_reserved": "the same for headers of a webhook",
    "invalid_range": "from is later than to",
    "too_large": "metadata is limited in bytes of JSON",
    "unsafe": "a file name with only dots",
    "invalid_domain": "the grammar of IDNA",
    "forbidden_target": "allowed targets of a URL",
    "invalid_cursor": "a cursor of the workspace",
    "blank": "text with only white space",
    "conflict": "deliverWithin or expiresAt, ip or domain",
    "invalid_ip": "the grammar of addresses",
    "before_schedule": "an expiry after the scheduled time",
    "after_expiry": "a schedule before the expiry",
    "foreign_group": "the group of the key",
    "invalid_entry": "domains, networks and templates of limits, and the recipients of rules",
    "invalid_stream": "properties of a stream that do not fit together",
    "transport_route_not_allowed": "the routes of the operator's file",
    "requires_sending_access": "limits of another scope",
    "requires_other_scope": "recipient rules of a key that may change them",
    "needs_approval": "a sensitive email of a key or stream that requires approval",
    "event_not_in_format": "the events of each format",
    "quota_of_a_stream": "a quota, which has no stream",
    "invalid_pattern": "the length of a pattern in lower case",
    "invalid_sender": "an address, or the grammar of IDNA",
    "receiving_not_active": "a domain of the workspace that receives",
    "retention_exceeded": "the days of the plan",
    "forward_needs_domain": "a domain of the workspace that sends",
    "forward_not_confirmed": "an address that has agreed",
    "forward_to_receiving_domain": "a domain that is not received here",
    "invalid_alternative": "the types of files that are alternatives",
    "not_addressed": "the addresses of to, cc and bcc",
    "unknown_webhook": "the webhooks of the workspace",
    "invalid_locale": "the grammar of language tags, also as names of members",
    "not_allowed": "a layout or partial has no subject",
    "template_syntax_error": "the language of templates",
}
# The recipient is none of ADDRESSES, which may be suppressed.
CREATED = {
    "emails": {"from": "hello@demo.example", "to": "not-generated@demo.example", "subject": "Hi", "html": "<p>Hi</p>"},
    "templates": {"name": "Hello", "subject": "Hello {{name}}", "htmlContent": "<p>{{name}}</p>"},
    "suppressions": {"email": "nobody@example.com"},
    "alerts": {"metric": "bounce_rate", "threshold": 5},
    "webhooks": {"url": "http://127.0.0.1:9/hook", "events": ["delivered"]},
}
ADDRESSES = st.from_regex(r"[a-z][a-z0-9]{0,12}@demo\.example", fullmatch=True)
NAMED = ADDRESSES.map(lambda address: f"Demo <{address}>")
CALL_NUMBERS = itertools.count()
MAX_LINE_LENGTH = 6000


def minutes_from_now(minutes: int) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat(timespec="seconds")


schemathesis.openapi.format("mailbox", ADDRESSES | NAMED)
schemathesis.openapi.format("idn-hostname", st.from_regex(r"[a-z]{3,12}\.(example|test)", fullmatch=True))
# scheduledFor is later than now, and at most 30 days ahead.
schemathesis.openapi.format("date-time", st.integers(10, 29 * 24 * 60).map(minutes_from_now))


@schemathesis.check
def refused_only_by_a_known_rule(ctx, response, case):
    """positive_data_acceptance for an API with rules that JSON Schema cannot express."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    problem = response.json() if response.status_code in REFUSED else {}
    codes = {error["code"] for error in problem.get("errors", ()) if not depends_on_a_choice(error)}
    # Different idempotency keys in header and body are refused by another such rule.
    assert problem.get("code") != "invalid_json", problem
    assert problem.get("code") != "validation_error" or codes <= RULES.keys(), problem


def depends_on_a_choice(error: dict[str, Any]) -> bool:
    """Return whether a limit depends on the kind or metric: layouts have no subject, and thresholds several units."""
    if error["code"] == "required":
        return re.fullmatch(r"(templates\[\d+\]\.)?subject", error["field"]) is not None
    return error["code"] == "max_value" and re.fullmatch(r"(alerts\[\d+\]\.)?threshold", error["field"]) is not None


REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


@schemathesis.hook
def filter_case(context, case):
    """Skip requests that gunicorn refuses because of their line length, and empty parameters, which count as absent."""
    if "" in (case.query or {}).values():
        return False
    parts = [*(case.path_parameters or {}).values(), *(case.query or {}).items()]
    return len(urllib.parse.quote_plus(str(parts))) < MAX_LINE_LENGTH


@schemathesis.hook
def before_call(context, case, kwargs):
    """Insert ids and keys of this workspace, so that requests pass the first checks."""
    number = next(CALL_NUMBERS)
    resource = case.operation.path.split("/")[2]
    if (
        number % 2
        and resource in CREATED
        and "id" in case.path_parameters
        and matches_schema(case, ParameterLocation.PATH)
    ):
        case.path_parameters["id"] = new_id(resource)
    if number % 2 and "webhook_id" in case.path_parameters and matches_schema(case, ParameterLocation.PATH):
        case.path_parameters["webhook_id"] = new_id(resource)
    if resource == "domains" and case.method == "DELETE" and case.path_parameters.get("id") == demo_domain():
        # Emails of the other requests come from it.
        case.path_parameters["id"] = "dom_0000000000000000000000"
    if number % 2 and resource == "admin" and matches_schema(case, ParameterLocation.PATH):
        insert_workspace(case)
    set_header_key(case, number)
    if isinstance(case.body, dict):
        set_idempotency_key(case, number)
    if isinstance(case.body, dict) and matches_schema(case, ParameterLocation.BODY):
        adapt_body(case.body)


def insert_workspace(case: Any) -> None:
    """Insert the id of a workspace that the management key may change."""
    name = "workspace_id" if "workspace_id" in case.path_parameters else "id"
    if name in case.path_parameters:
        # Nothing is created in a deleted workspace.
        case.path_parameters[name] = new_workspace_id(is_deleted=name == "id" and case.method == "DELETE")


@functools.cache
def new_workspace_id(*, is_deleted: bool) -> str:
    return str(call("admin/workspaces", {"name": "Managed"})["id"])


def set_header_key(case: Any, number: int) -> None:
    """Use a new key for a request without a body: the same key for another operation is refused."""
    has_key = "Idempotency-Key" in (case.headers or {})
    if has_key and not isinstance(case.body, dict) and matches_schema(case, ParameterLocation.HEADER):
        case.headers["Idempotency-Key"] = f"key-{number}"


def set_idempotency_key(case: Any, number: int) -> None:
    """Use a new idempotency key in one place; a used one is answered before the fields are validated."""
    if "idempotencyKey" in case.body and matches_schema(case, ParameterLocation.HEADER):
        case.headers.pop("Idempotency-Key", None)
    if number % 8 == 0 and matches_schema(case, ParameterLocation.BODY):
        return
    if "Idempotency-Key" in case.headers and matches_schema(case, ParameterLocation.HEADER):
        case.headers["Idempotency-Key"] = f"key-{number}"
    given = case.body.get("idempotencyKey")
    if isinstance(given, str) and 1 <= len(given) <= 255:
        case.body["idempotencyKey"] = f"key-{number}"


def adapt_body(body: dict[str, Any]) -> None:
    if body.get("templateId"):
        body["templateId"] = "hello"
    if "from" in body and not body["from"].rstrip(">").endswith("@demo.example"):
        body["from"] = "hello@demo.example"
    if body.get("scheduledFor"):
        body["scheduledFor"] = minutes_from_now(60)
    if body.get("expiresAt"):
        body["expiresAt"] = minutes_from_now(120)
    # No server listens there.
    if "url" in body:
        body["url"] = CREATED["webhooks"]["url"]
    # A suppressed address would be refused in all later emails.
    if "email" in body:
        body["email"] = "nobody@example.com"
    if "emails" in body:
        body["emails"] = [f"nobody{place}@example.com" for place in range(len(body["emails"]))]


def matches_schema(case: Any, location: ParameterLocation) -> bool:
    """Return whether this part of a request matches its schema; stateful tests set the ids of the path."""
    if case.meta is None:
        return location is not ParameterLocation.PATH
    if location is ParameterLocation.PATH and case.meta.phase.name.value == "stateful":
        return False
    part = case.meta.components.get(location)
    return part is None or part.mode.is_positive


@functools.cache
def demo_domain() -> str:
    return next(domain["id"] for domain in call("domains?limit=100")["data"] if domain["name"] == "demo.example")


def new_id(resource: str) -> str:
    # A workspace can have at most 20 webhook endpoints, and alerts, which have to differ.
    if resource in ("webhooks", "alerts") and (existing := call(f"{resource}?limit=1")["data"]):
        return existing[0]["id"]
    path = "emails/send" if resource == "emails" else resource
    later = {"scheduledFor": minutes_from_now(24 * 60)} if resource == "emails" else {}
    return call(path, {**CREATED[resource], **later})["id"]


def call(path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{os.environ['API_URL']}/v1/{path}", body and json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        raise AssertionError(f"{path}: {error.read().decode()}") from error
