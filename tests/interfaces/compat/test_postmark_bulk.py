"""Bulk requests in Postmark's API: one content for many messages."""

import uuid

import pytest

from emails.models import Attachment, Content, Email, Recipient
from emails.states import EmailStatus
from suppressions.services import suppress_addresses
from tests.interfaces.compat.test_postmark import error, mail
from tests.rows import each

pytestmark = pytest.mark.django_db


def bulk(*messages: dict, **fields) -> dict:
    body = {"From": "Alice <hi@alice.example>", "Subject": "Hi", "TextBody": "Hello", "HtmlBody": "<p>Hello</p>"}
    return {**body, "Messages": list(messages) or [to("ada"), to("bob")], **fields}


def to(name: str, **fields) -> dict:
    return {"To": f"{name}@example.com", **fields}


def test_each_message_is_an_email_with_the_shared_content(postmark):
    file = {"Name": "a.txt", "Content": "QQ==", "ContentType": "text/plain"}
    messages = [
        to("ada", Cc="carol@example.com", Metadata={"n": "1"}, Headers=[{"Name": "X-B", "Value": "2"}]),
        to("bob", Bcc="dan@example.com"),
    ]
    shared = {"Tag": "news", "Metadata": {"n": "0", "run": "7"}, "Headers": [{"Name": "X-A", "Value": "1"}]}
    response = postmark.post("/email/bulk", bulk(*messages, **shared, Attachments=[file], TrackOpens=False))
    body = response.json()
    assert (response.status_code, body.keys()) == (200, {"Id", "Status", "SubmittedAt"})
    assert (str(uuid.UUID(body["Id"])), body["Status"]) == (body["Id"], "Accepted")
    ada, bob = Email.objects.order_by("to")
    assert (ada.cc, ada.metadata, ada.headers) == (
        ["carol@example.com"], {"n": "1", "run": "7"}, {"X-A": "1", "X-B": "2"},
    )  # fmt: skip
    assert (bob.bcc, bob.metadata, bob.tags, bob.track_opens) == (
        ["dan@example.com"],
        shared["Metadata"],
        ["news"],
        False,
    )
    assert (Content.objects.count(), Attachment.objects.count(), ada.batch_id) == (1, 1, bob.batch_id)


def test_a_model_fills_subject_and_bodies_of_its_message(postmark):
    messages = [to("ada", TemplateModel={"name": "Ada"}), to("bob", TemplateModel={"name": "<Bob>"}), to("carol")]
    content = {"Subject": "Hi {{name}}", "HtmlBody": "<p>{{name}}</p>", "TextBody": "{{name}}"}
    assert postmark.post("/email/bulk", bulk(*messages, **content)).status_code == 200
    rows = Email.objects.order_by("to").values_list("subject", "content__html", "content__text")
    assert list(rows) == [
        ("Hi Ada", "<p>Ada</p>", "Ada"),
        ("Hi <Bob>", "<p>&lt;Bob&gt;</p>", "<Bob>"),
        ("Hi {{name}}", "<p>{{name}}</p>", "{{name}}"),
    ]


def test_a_template_is_rendered_with_each_model(postmark, template):
    messages = [to("ada", TemplateModel={"name": "Ada"}), to("bob", TemplateModel={"name": "Bob"})]
    assert postmark.post("/email/bulk", {**bulk(*messages), "TemplateAlias": "hello"}).status_code == 200
    assert set(Email.objects.values_list("subject", flat=True)) == {"Hi Ada", "Hi Bob"}
    assert error(postmark.post("/email/bulk", {**bulk(), "TemplateAlias": "none"})) == (422, 1101)


def test_the_progress_counts_finished_messages(postmark):
    given = postmark.post("/email/bulk", bulk(to("ada"), to("bob"), to("carol"))).json()["Id"]
    assert postmark.get(f"/email/bulk/{given}").json() | {"SubmittedAt": ""} == {
        "Id": given, "Status": "Accepted", "SubmittedAt": "", "TotalMessages": 3, "PercentageCompleted": 0,
        "Subject": "Hi",
    }  # fmt: skip
    one = Email.objects.first()
    Email.objects.filter(id=one.id).update(finished_at=one.created_at)
    progress = postmark.get(f"/email/bulk/{given}").json()
    assert (progress["Status"], progress["PercentageCompleted"]) == ("Processing", 33)
    Email.objects.update(finished_at=one.created_at)
    assert postmark.get(f"/email/bulk/{given}").json()["Status"] == "Completed"


@each(
    ("body", "expected"),
    [
        (bulk(Messages=[]), (422, 300)),
        (bulk(Messages=None), (422, 300)),
        (bulk(Messages=[7]), (422, 300)),
        (bulk(to("ada"), {"To": "nobody"}), (422, 300)),
        (bulk(*[to("ada")] * 501), (422, 300)),
        (bulk(From="hi@elsewhere.example"), (422, 400)),
        (bulk(TextBody=None, HtmlBody=None), (422, 300)),
        (bulk(to("ada", TemplateModel={"a": 1}), TextBody="{{#if}"), (422, 1122)),
        (bulk(to("ada", Headers=[{"Name": "X-A", "Value": "2"}]), Headers=[{"Name": "X-A", "Value": "1"}]), (422, 300)),
    ],
)
def test_one_invalid_message_refuses_all(postmark, body, expected):
    assert error(postmark.post("/email/bulk", body)) == expected
    assert not Email.objects.exists()


def test_rendered_messages_have_a_limit_together(postmark, monkeypatch):
    monkeypatch.setattr("interfaces.compat.postmark.bulk.MAX_RENDERED", 100)
    body = bulk(to("ada", TemplateModel={"name": "a" * 50}), HtmlBody="{{name}}{{name}}")
    assert error(postmark.post("/email/bulk", body)) == (413, 300)
    assert not Email.objects.exists()


def test_inactive_recipients_are_accepted(postmark, alice):
    suppress_addresses(alice.workspace, addresses=["ada@example.com"], reason="bounce")
    assert postmark.post("/email/bulk", bulk()).status_code == 200
    assert set(Recipient.objects.values_list("state", flat=True)) == {EmailStatus.QUEUED}


@each(("path", "body", "count"), [
    ("/email", mail(), 1), ("/email/batch", [mail(), mail(To="nobody")], 1), ("/email/bulk", bulk(), 2),
])  # fmt: skip
def test_a_repeated_idempotency_key_returns_the_first_response(postmark, path, body, count):
    first = postmark.post(path, body, idempotency_key="k").json()
    assert postmark.post(path, body, idempotency_key="k").json() == first
    assert Email.objects.count() == count


def test_an_idempotency_key_of_another_endpoint_is_refused(postmark):
    unknown = {"TemplateAlias": "unknown", "TemplateModel": {}}
    body = bulk(to("ada", From="hi@alice.example", **unknown), **unknown)
    assert postmark.post("/email/batchWithTemplates", body, idempotency_key="k").status_code == 200
    assert postmark.post("/email/bulk", body, idempotency_key="k").status_code == 409
    assert not Email.objects.exists()
