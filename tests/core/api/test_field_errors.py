"""Validation errors: every invalid field at once, a summary in `detail`, and suggestions in plain words."""

import itertools
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rest_framework.exceptions import ValidationError

# Both together import every serializer.
import config.urls  # noqa: F401
import interfaces.submission.options  # noqa: F401
from core.api.exception_handler import field_errors
from core.api.fields import RowInput, StrictSerializer
from core.api.suggestions import suggest_event, suggest_field
from emails.accept.rules.emails import BatchInput, BatchRecipientInput, SendInput
from events.kinds import WEBHOOK_KINDS
from tests.conftest import Api, examples, mail
from tests.rows import each

VALID_SEND = mail()
VALID_BATCH = {"from": "hi@alice.example", "templateId": "welcome", "recipients": [{"to": "ada@example.com"}]}
# The app of a module.
PACKAGE = r"((core|interfaces|console)\.)?\w+"
# By field: an invalid value, and the paths of its errors.
SEND_FAULTS: dict[str, tuple[Any, set[str]]] = {
    "from": ("alice", {"from"}),
    "to": (["nobody", "ada@example.com", 7], {"to[0]", "to[2]"}),
    "cc": (["ada@example.com", ""], {"cc[1]"}),
    "bcc": ({"email": "ada@example.com"}, {"bcc"}),
    "replyTo": (["ada@example.com", "x"], {"replyTo[1]"}),
    "subject": (None, {"subject"}),
    "html": (None, {"html"}),
    "headers": ({"Subject": "x", "X-Count": 7}, {"headers.Subject", "headers.X-Count"}),
    "tags": (["ok", 7, ""], {"tags[1]", "tags[2]"}),
    "metadata": ([], {"metadata"}),
    "scheduledFor": ("tomorrow", {"scheduledFor"}),
    "trackOpens": ("yes", {"trackOpens"}),
    "idempotencyKey": (12, {"idempotencyKey"}),
    "attachments": (
        [{"filename": "a/b", "content": "?"}, {"content": "", "name": "b.txt", "contentId": "a b"}],
        {
            "attachments[0].filename", "attachments[0].content",
            "attachments[1].filename", "attachments[1].name", "attachments[1].contentId",
        },
    ),
    "reply_to": ("ada@example.com", {"reply_to"}),
}  # fmt: skip
BATCH_FAULTS: dict[str, tuple[Any, set[str]]] = {
    "from": (None, {"from"}),
    "templateId": (7, {"templateId"}),
    "subject": ("two\nlines", {"subject"}),
    "tags": (["x"] * 11, {"tags"}),
    "scheduledFor": ("2001-01-01T00:00:00Z", {"scheduledFor"}),
    "html": ("<p>Hi</p>", {"html"}),
    "recipients": (
        [{"to": "ada@example.com"}, {"to": "ada"}, {"templateData": [], "metadata": 7}, "ada@example.com"],
        {"recipients[1].to", "recipients[2].to", "recipients[2].templateData", "recipients[2].metadata",
         "recipients[3]"},
    ),
}  # fmt: skip
OPERATIONS = [(SendInput, VALID_SEND, SEND_FAULTS), (BatchInput, VALID_BATCH, BATCH_FAULTS)]


def invalid_fields(serializer: type[StrictSerializer], body: Any) -> list[str]:
    return [error["field"] for error in errors_of(serializer, body)]


def errors_of(serializer: type[StrictSerializer], body: Any) -> list[dict[str, str]]:
    try:
        serializer().run_validation(body)
    except ValidationError as error:
        return field_errors(error.get_full_details())
    return []


class TestAllAtOnce:
    @pytest.mark.parametrize(("serializer", "body", "faults"), OPERATIONS, ids=["send", "batch"])
    @settings(max_examples=examples(300))
    @given(data=st.data())
    def test_a_request_with_several_faults_reports_all_of_them(self, serializer, body, faults, data):
        chosen = data.draw(st.sets(st.sampled_from(sorted(faults)), min_size=1))
        invalid = {name: faults[name][0] for name in chosen}
        request = {name: value for name, value in {**body, **invalid}.items() if value is not None}
        expected = set().union(*(faults[name][1] for name in chosen))
        found = invalid_fields(serializer, request)
        assert set(found) == expected
        assert len(found) == len(expected)

    def test_an_empty_body_reports_all_required_fields(self, api: Api):
        response = api.post("/emails/send", {})
        assert {error["field"] for error in response.json()["errors"]} == {"from", "to", "subject", "html"}
        response = api.post("/emails/batch", {})
        assert {error["field"] for error in response.json()["errors"]} == {"from", "templateId", "recipients"}

    @each(
        ("body", "fields"),
        [
            ({"email": "x", "emails": ["y"]}, {"email", "emails[0]"}),
            ({"email": "ada@example.com", "emails": [], "reason": "manual"}, {"emails", "reason"}),
            ({"address": "ada@example.com"}, {"email", "address"}),
        ],
    )
    def test_suppressions_report_wrong_fields_and_combinations(self, api: Api, body, fields):
        response = api.post("/suppressions", body)
        assert {error["field"] for error in response.json()["errors"]} == fields

    @each("path", ["/emails?status=x&to=never", "/suppressions?reason=x"])
    def test_a_query_reports_filters_and_page_numbers_together(self, api: Api, path):
        response = api.get(f"{path}&page=0&limit=many")
        expected = re.findall(r"[?&](\w+)=", path)
        assert [error["field"] for error in response.json()["errors"]] == [*expected, "page", "limit"]

    def test_a_query_reports_a_reversed_range_and_an_unknown_status_together(self, api: Api):
        response = api.get("/emails?from=2026-02-01&to=2026-01-01&status=lost")
        assert {error["field"] for error in response.json()["errors"]} == {"from", "status"}

    def test_of_a_list_with_too_many_entries_none_is_validated(self):
        assert invalid_fields(SendInput, mail(tags=[7] * 10_000)) == ["tags"]


class TestSummary:
    @each(
        ("fields", "end"),
        [
            ({"to": "nobody"}, ""),
            ({"to": ["nobody", "noone"]}, " 1 more error."),
            ({"to": "nobody", "subject": None, "html": None}, " 2 more errors."),
        ],
    )
    def test_detail_is_the_first_reason_and_the_number_of_others(self, api: Api, fields, end):
        problem = api.post("/emails/send", mail(**fields)).json()
        reason = problem["errors"][0]["detail"]
        assert reason.startswith("'nobody' is not an email address")
        assert problem["detail"] == f"to[0]: {reason}{end}"

    def test_a_body_that_is_not_an_object_is_named_body(self):
        assert errors_of(BatchRecipientInput, 7) == [
            {"field": "body", "code": "invalid_type", "detail": "This must be an object."}
        ]

    def test_a_long_name_is_cut(self, api: Api):
        problem = api.post("/emails/send", mail(headers={"x" * 500_000: "1"})).json()
        assert len(problem["detail"]) < 300
        assert len(problem["errors"][0]["field"]) < 120


WORDS = "ada@example.com", "2026-11-21T06:20:00Z", "", " ", "x", "a b", "sent", "https://hooks.example/"
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(("to", "email", "filename", "content", "x")), inner, max_size=3)
    ),
    max_leaves=6,
)
# Words of Python and of Django REST framework that mean nothing to a client of a JSON API.
FOREIGN_WORDS = re.compile(
    r"\b(dict|dictionary|items|list_?field|elements?|tuple|bytes|bool|int|float|str|NoneType|None|True|False"
    r"|Error|Exception|valid (string|boolean|integer|number)|type \"\w+\")\b"
)


def input_serializers(parent: type[StrictSerializer] = StrictSerializer) -> list[type[StrictSerializer]]:
    children = parent.__subclasses__()
    inputs = [child for child in children if child is not RowInput]
    return inputs + list(itertools.chain.from_iterable(map(input_serializers, children)))


class TestPlainWords:
    @pytest.mark.parametrize("serializer", input_serializers(), ids=lambda serializer: serializer.__name__)
    @settings(max_examples=examples(300))
    @given(data=st.data())
    def test_no_error_contains_a_word_of_python(self, serializer, data):
        names = st.sampled_from(sorted(serializer().fields))
        for error in errors_of(serializer, data.draw(st.dictionaries(names, VALUES, min_size=1))):
            assert not FOREIGN_WORDS.search(error["detail"]), error
            assert error["detail"].endswith((".", "?")), error

    def test_there_is_an_input_of_each_resource(self):
        packages = {re.match(PACKAGE, serializer.__module__)[0] for serializer in input_serializers()}
        resources = {"emails", "streams", "templates_app", "suppressions", "domains", "webhooks", "alerts", "receiving"}
        others = {
            "core.workspaces", "interfaces.compat", "interfaces.submission", "console.provisioning", "console.privacy",
        }  # fmt: skip
        assert packages == resources | others


class TestSuggestions:
    @each(
        ("name", "fields"),
        [
            ("scheduledfor", "'scheduledFor'"),
            ("scheduled_at", "'scheduledFor'"),
            ("send_at", "'scheduledFor'"),
            ("reply_to", "'replyTo'"),
            ("reply_to_list", "'replyTo'"),
            ("ReplyToAddresses", "'replyTo'"),
            ("From", "'from'"),
            ("FromEmailAddress", "'from'"),
            ("HtmlBody", "'html'"),
            ("TextBody", "'text'"),
            ("body", "'html' or 'text'"),
            ("content", "'html' or 'text'"),
            ("personalizations", "'to', 'cc' or 'bcc'"),
            ("Destination", "'to', 'cc' or 'bcc'"),
            ("template_id", "'templateId'"),
            ("TemplateAlias", "'templateId'"),
            ("TemplateModel", "'templateData'"),
            ("dynamic_template_data", "'templateData'"),
            ("categories", "'tags'"),
            ("custom_args", "'metadata'"),
            ("TrackLinks", "'trackClicks'"),
            ("idempotency_key", "'idempotencyKey'"),
            ("subjct", "'subject'"),
        ],
    )
    def test_a_field_of_another_service_is_answered_with_ours(self, name, fields):
        (error,) = errors_of(SendInput, mail(**{name: "x"}))
        assert error == {
            "field": name,
            "code": "unknown_field",
            "detail": f"Unknown field {name!r}. Did you mean {fields}?",
        }

    def test_a_suggestion_is_a_field_of_the_same_object(self):
        assert suggest_field("personalizations", BatchInput().fields) == " Did you mean 'recipients'?"
        attachment = SendInput().fields["attachments"].child.fields
        assert suggest_field("Name", attachment) == " Did you mean 'filename'?"
        assert suggest_field("content_type", attachment) == " Did you mean 'contentType'?"
        assert suggest_field("zzz", attachment) == ""

    @each(
        ("name", "event"),
        [
            ("open", "opened"),
            ("Delivered", "delivered"),
            ("email.delivery_delayed", "deferred"),
            ("spamreport", "complained"),
            ("bounce", "bounced"),
            ("dropped", "failed"),
        ],
    )
    def test_an_unknown_event_is_answered_with_the_nearest_one(self, api: Api, name, event):
        webhook = {"url": "https://hooks.example/", "events": ["sent", name]}
        (error,) = api.post("/webhooks", webhook).json()["errors"]
        assert error["field"] == "events[1]"
        assert f" Did you mean {event!r}? Use one of sent, delivered" in error["detail"]

    def test_an_event_that_resembles_none_has_no_suggestion(self):
        assert suggest_event("xyz", WEBHOOK_KINDS) == ""

    @each(
        ("given", "advice"),
        [
            ("a@x.com, b@x.com", "it contains several addresses. Give each address as a separate string"),
            ("A <a@x.com>; B <b@x.com>", "it contains several addresses. Give each address as a separate string"),
            ("Demo hello@x.com", "write Demo <hello@x.com>."),
            ("Demo <hello@x.com", "write Demo <hello@x.com>."),
            ("mailto:hello@x.com", "omit mailto:."),
        ],
    )
    def test_a_common_mistake_in_an_address_is_explained(self, given, advice):
        for body in (mail(to=given), mail(to=[given]), mail(**{"from": given}), mail(cc=given), mail(replyTo=given)):
            (error,) = errors_of(SendInput, body)
            assert error["detail"].startswith(f"{given!r} is not an email address: {advice}")

    def test_an_address_given_as_an_object_is_answered_with_an_example(self):
        (error,) = errors_of(SendInput, mail(to=[{"email": "ada@example.com", "name": "Ada"}]))
        assert "Ada L <ada@example.com>" in error["detail"]

    @each(
        "given",
        [
            "https://mail.example.com/path?query",
            "http://mail.example.com:8080",
            "mail.example.com/",
            "mail.example.com:25",
            "hello@mail.example.com",
            "mailto:hello@mail.example.com",
        ],
    )
    def test_a_domain_given_as_a_url_is_answered_with_its_name(self, api: Api, given):
        (error,) = api.post("/domains", {"name": given}).json()["errors"]
        assert error["detail"].endswith(" is not a domain name. Give only the name, 'mail.example.com'.")
        assert api.post("/domains", {"name": "mail.example.com"}).status_code == 201


@each("field", ["cc", "bcc", "replyTo", "to"])
def test_an_address_field_takes_a_single_string(api: Api, field):
    email_id = api.post("/emails/send", mail(**{field: "Grace <grace@example.com>"})).json()["id"]
    detail = api.get(f"/emails/{email_id}").json()
    assert "grace@example.com" in str(detail[field])
