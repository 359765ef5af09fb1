"""What schemathesis is told about this service beyond its document; read by the run of test_schemathesis."""

import itertools
import json
import os
import urllib.parse
import urllib.request
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

import schemathesis
from hypothesis import strategies as st
from schemathesis.core.parameters import ParameterLocation

# A request may follow its schema and still be refused: for a fact of the workspace, which has a code of its own,
# or by one of these rules, which JSON Schema cannot tell.
RULES = {
    "duplicate_header": "two names that differ in case alone",
    "reserved_header": "names, compared without case, and prefixes",
    "invalid_range": "from is later than to",
    "too_large": "metadata is counted in bytes of JSON",
    "unsafe": "a file name of dots alone",
    "invalid_domain": "the grammar of IDNA",
    "forbidden_target": "where a URL may lead",
}
CREATED = {
    "emails": {"from": "hello@demo.example", "to": "ada@demo.example", "subject": "Hi", "html": "<p>Hi</p>"},
    "templates": {"name": "Hello", "subject": "Hello {{name}}", "htmlContent": "<p>{{name}}</p>"},
    "suppressions": {"email": "nobody@example.com"},
    "webhooks": {"url": "http://127.0.0.1:9/hook", "events": ["delivered"]},
}
ADDRESSES = st.from_regex(r"[a-z][a-z0-9]{0,12}@demo\.example", fullmatch=True)
NAMED = ADDRESSES.map(lambda address: f"Demo <{address}>")
TURNS = itertools.count()
LONGEST_LINE = 6000


def moment(minutes: int) -> str:
    return (datetime.now(UTC) + timedelta(minutes=minutes)).isoformat(timespec="seconds")


schemathesis.openapi.format("mailbox", ADDRESSES | NAMED)
schemathesis.openapi.format("idn-hostname", st.from_regex(r"[a-z]{3,12}\.(example|test)", fullmatch=True))
# scheduledFor is later than now, and at most 30 days ahead.
schemathesis.openapi.format("date-time", st.integers(10, 29 * 24 * 60).map(moment))


@schemathesis.check
def refused_by_a_rule_alone(ctx, response, case):
    """positive_data_acceptance, for an API whose rules reach further than JSON Schema."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return
    problem = response.json() if response.status_code in REFUSED else {}
    codes = {error["code"] for error in problem.get("errors", ())}
    # Two idempotency keys that differ are one more rule between two values.
    assert problem.get("code") != "invalid_json", problem
    assert problem.get("code") != "validation_error" or codes <= RULES.keys(), problem


REFUSED = (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)


@schemathesis.hook
def filter_case(context, case):
    """Leave out what gunicorn answers, which takes no longer line (limit_request_line), before the service sees it."""
    parts = [*(case.path_parameters or {}).values(), *(case.query or {}).items()]
    return len(urllib.parse.quote_plus(str(parts))) < LONGEST_LINE


@schemathesis.hook
def before_call(context, case, kwargs):
    """Let requests get further than to the first fact that only this workspace knows."""
    turn = next(TURNS)
    resource = case.operation.path.split("/")[2]
    if turn % 2 and resource in CREATED and "id" in case.path_parameters and follows(case, ParameterLocation.PATH):
        case.path_parameters["id"] = new_id(resource)
    if turn % 2 and "webhook_id" in case.path_parameters and follows(case, ParameterLocation.PATH):
        case.path_parameters["webhook_id"] = new_id(resource)
    if isinstance(case.body, dict):
        settle_keys(case, turn)
    if isinstance(case.body, dict) and follows(case, ParameterLocation.BODY):
        settle_body(case.body)


def settle_keys(case: Any, turn: int) -> None:
    """Give an idempotency key in one place, and a new one: a used one is answered before the fields are read."""
    if "idempotencyKey" in case.body and follows(case, ParameterLocation.HEADER):
        case.headers.pop("Idempotency-Key", None)
    if turn % 8 == 0 and follows(case, ParameterLocation.BODY):
        return
    if "Idempotency-Key" in case.headers and follows(case, ParameterLocation.HEADER):
        case.headers["Idempotency-Key"] = f"key-{turn}"
    given = case.body.get("idempotencyKey")
    if isinstance(given, str) and 1 <= len(given) <= 255:
        case.body["idempotencyKey"] = f"key-{turn}"


def settle_body(body: dict[str, Any]) -> None:
    if body.get("templateId"):
        body["templateId"] = "hello"
    if "from" in body and not body["from"].rstrip(">").endswith("@demo.example"):
        body["from"] = "hello@demo.example"
    if body.get("scheduledFor"):
        body["scheduledFor"] = moment(60)
    # Nobody listens there.
    if "url" in body:
        body["url"] = CREATED["webhooks"]["url"]
    # A blocked address would be refused in every email after.
    if "email" in body:
        body["email"] = "nobody@example.com"
    if "emails" in body:
        body["emails"] = [f"nobody{place}@example.com" for place in range(len(body["emails"]))]


def follows(case: Any, location: ParameterLocation) -> bool:
    """Tell whether this part of a request follows its schema; ids of a chain of calls are the chain's."""
    if case.meta is None or case.meta.phase.name.value == "stateful":
        return location is not ParameterLocation.PATH
    part = case.meta.components.get(location)
    return part is None or part.mode.is_positive


def new_id(resource: str) -> str:
    # A workspace has 20 of them at most.
    if resource == "webhooks" and (existing := call("webhooks?limit=1")["data"]):
        return existing[0]["id"]
    path = "emails/send" if resource == "emails" else resource
    later = {"scheduledFor": moment(24 * 60)} if resource == "emails" else {}
    return call(path, {**CREATED[resource], **later})["id"]


def call(path: str, body: dict[str, Any] | None = None) -> Any:
    headers = {"Authorization": f"Bearer {os.environ['API_KEY']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{os.environ['API_URL']}/v1/{path}", body and json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)
