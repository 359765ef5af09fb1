"""`POST /v1/emails/send`: accepted fields, refusals, written rows."""

import re

import pytest

from core.lib.worker.stages import Stage
from core.workspaces.models import Usage
from emails.models import Email, QueueEntry, Recipient
from events.models import Event
from tests.conftest import Api, field_codes, mail
from tests.emails.builders import send
from tests.rows import each

pytestmark = pytest.mark.django_db

MIB = 1024 * 1024


def test_the_response_contains_the_id_of_the_email(api: Api):
    response = api.post("/emails/send", mail())
    body = response.json()
    assert response.status_code == 202
    assert body.keys() == {"id", "status", "createdAt"}
    assert body["status"] == "queued"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", body["createdAt"])
    assert api.get(f"/emails/{body['id']}").json()["createdAt"] == body["createdAt"]


def test_all_fields_of_the_request_are_in_the_detail(api: Api):
    sent = mail(
        to=["Ada L <ada@example.com>", "bob@example.com"],
        cc=["carol@example.com"],
        bcc=["dan@example.com"],
        replyTo="Help <help@alice.example>",
        text="Hi",
        tags=["a", "b"],
        metadata={"order": 7, "nested": {"x": [1, None, "é"]}},
    )
    email = api.get(f"/emails/{api.post('/emails/send', sent).json()['id']}").json()
    assert email["to"] == "Ada L <ada@example.com>, bob@example.com"
    assert email["from"] == "Alice <hi@alice.example>"
    assert (email["cc"], email["bcc"]) == (["carol@example.com"], ["dan@example.com"])
    assert email["replyTo"] == "Help <help@alice.example>"
    assert (email["htmlContent"], email["text"], email["subject"]) == ("<p>Hi</p>", "Hi", "Hello")
    assert (email["tags"], email["metadata"]) == (sent["tags"], sent["metadata"])
    state = [email[name] for name in ("status", "sentAt", "deliveredAt", "errorMessage", "retryCount")]
    assert state == ["queued", None, None, None, 0]
    kinds = [(recipient["email"], recipient["type"], recipient["status"]) for recipient in email["recipients"]]
    assert kinds == [
        ("ada@example.com", "to", "queued"),
        ("bob@example.com", "to", "queued"),
        ("carol@example.com", "cc", "queued"),
        ("dan@example.com", "bcc", "queued"),
    ]


def test_several_reply_to_addresses_are_stored_and_shown_together(api: Api):
    addresses = ['"Help, Desk" <help@alice.example>', "bob@alice.example"]
    email = api.get(f"/emails/{api.post('/emails/send', mail(replyTo=addresses)).json()['id']}").json()
    assert email["replyTo"] == ", ".join(addresses)


def test_acceptance_creates_recipients_queue_entries_and_a_timeline_and_omitted_fields_are_empty(api: Api):
    email_id = send(api, to=["a@example.com", "b@example.com"])
    assert Recipient.objects.count() == QueueEntry.objects.count() == 2
    assert set(QueueEntry.objects.values_list("stage", "attempts", "domain")) == {(Stage.READY, 0, "example.com")}
    (event,) = Event.objects.all()
    assert (event.kind, event.payload) == ("queued", {"emailId": email_id})
    (event,) = api.get(f"/emails/{email_id}/events").json()["data"]
    assert event["id"].startswith("evt_")
    assert (event["eventType"], event["sentToWebhook"], event["payload"]) == ("queued", False, {"emailId": email_id})
    email = api.get(f"/emails/{email_id}").json()
    assert (email["replyTo"], email["metadata"], email["tags"], email["cc"], email["bcc"]) == (None, None, [], [], [])


def test_a_repeated_address_is_kept_once(api: Api):
    sent = mail(to=["a@example.com", "A@Example.com"], cc=["a@example.com", "b@example.com"], bcc=["B@example.com"])
    email = api.get(f"/emails/{api.post('/emails/send', sent).json()['id']}").json()
    assert [recipient["email"] for recipient in email["recipients"]] == ["a@example.com", "b@example.com"]
    assert (email["to"], email["cc"], email["bcc"]) == ("a@example.com", ["b@example.com"], [])


@each(("address", "normalized"), [
    ("ada@example.com", "ada@example.com"), ("  Ada L  <ada@example.com> ", "Ada L <ada@example.com>"),
    ('"L, Ada" <ada@example.com>', '"L, Ada" <ada@example.com>'), ("Ada@EXAMPLE.com", "Ada@example.com"),
    ("ada+tag@example.com", "ada+tag@example.com"), ("ada@bücher.example", "ada@xn--bcher-kva.example"),
    ("Åsa Ünal <asa@example.com>", "Åsa Ünal <asa@example.com>"),
    ("爱丽丝 😀 <a@example.com>", "爱丽丝 😀 <a@example.com>"),
    ("x@simulator.test", "x@simulator.test"),
])  # fmt: skip
def test_an_address_is_normalized(api: Api, address, normalized):
    response = api.post("/emails/send", mail(to=address))
    assert response.status_code == 202, response.content
    assert api.get(f"/emails/{response.json()['id']}").json()["to"] == normalized


BAD_ADDRESSES = [
    "", "ada", "ada@", "@example.com", "ada@localhost", "ada@example..com", "a b@example.com",
    "ada@example.com, bob@example.com", "Ada <ada@example.com", "Ada ada@example.com>", "<>",
    "Friends: ada@example.com;", "ada@[127.0.0.1]", "ada@exa mple.com", "Ada\r\nBcc: eve@example.com <ada@example.com>",
    "Ada\n <ada@example.com>", "Ada\u2028 <ada@example.com>", "Ada\u202e <ada@example.com>",
    "ada@example.com>\r\nRCPT TO:<eve@example.com", "Ada\x7f <ada@example.com>", "a" * 65 + "@example.com",
    "a@" + "b" * 250 + ".com",
]  # fmt: skip


@each("address", BAD_ADDRESSES)
@each(("field", "path"), [("to", "to[0]"), ("from", "from"), ("replyTo", "replyTo")])
def test_an_invalid_address_is_refused(api: Api, address, field, path):
    response = api.post("/emails/send", mail(**{field: address}))
    assert field_codes(response)[path] in {"invalid_email", "blank"}
    assert not Email.objects.exists()


@each("subject", ["a\nb", "a\r\nBcc: eve@example.com", "a\x00b", "a\x1bb", "a\u2028b", "a\x85b", "\u202eabc"])
def test_a_subject_with_a_line_break_is_refused(api: Api, subject):
    response = api.post("/emails/send", mail(subject=subject))
    assert response.status_code in {400, 422}
    assert not Email.objects.exists()


def test_all_invalid_fields_are_reported_together(api: Api):
    response = api.post(
        "/emails/send", {"from": "x", "to": ["ok@example.com", "bad"], "subject": 7, "tags": ["a", 3], "metadata": []}
    )
    assert field_codes(response) == {
        "from": "invalid_email",
        "to[1]": "invalid_email",
        "subject": "invalid",
        "html": "required",
        "tags[1]": "invalid",
        "metadata": "invalid_type",
    }
    assert all(error["detail"] for error in response.json()["errors"])


@each(("field", "body"), [
    ("from", {"from": None}), ("to", {"to": None}), ("subject", {"subject": None}),
    ("html", {"html": None}), ("html", {"html": ""}), ("html", {"html": "", "text": ""}),
])  # fmt: skip
def test_a_missing_field_is_reported_and_an_email_without_content_on_html(api: Api, field, body):
    assert field_codes(api.post("/emails/send", mail(**body)))[field] == "required"


def test_text_without_html_and_unknown_query_parameters_are_accepted(api: Api):
    response = api.post("/emails/send?trace=1", mail(html=None, text="Hi"))
    assert api.get(f"/emails/{response.json()['id']}").json()["htmlContent"] == ""


@each(
    ("name", "meant"),
    [("subjct", "subject"), ("reply_to", "replyTo"), ("idempotencykey", "idempotencyKey"), ("Subject", "subject")],
)
def test_an_unknown_field_is_refused_with_a_hint(api: Api, name, meant):
    response = api.post("/emails/send", mail() | {name: "x"})
    assert field_codes(response)[name] == "unknown_field"
    assert repr(meant) in response.json()["errors"][0]["detail"]
    assert not Email.objects.exists()


def addresses(count: int) -> list[str]:
    return [f"a{number}@example.com" for number in range(count)]


@each("field", ["to", "cc", "bcc", "envelope"])
def test_50_addresses_pass_and_51_do_not(api: Api, field):
    assert api.post("/emails/send", mail(**{"to": addresses(50), field: addresses(50)})).status_code == 202
    response = api.post("/emails/send", mail(**{field: addresses(51)}))
    assert (response.status_code, response.json()["code"]) == (422, "too_many_recipients")


def test_to_may_be_empty_if_there_are_copies(api: Api):
    for field in ("cc", "bcc"):
        accepted = api.post("/emails/send", mail(to=[], **{field: ["eve@example.com"]}))
        assert accepted.status_code == 202
        assert api.get(f"/emails/{accepted.json()['id']}").json()["to"] == ""
    assert list(Recipient.objects.order_by("kind").values_list("kind", flat=True)) == ["bcc", "cc"]
    assert field_codes(api.post("/emails/send", mail(to=[], cc=[], bcc=None)))["to"] == "min_length"


def test_the_envelope_limits_who_receives_the_email(api: Api):
    shown = {"to": "list@example.com", "bcc": ["Ada@example.com", "bob@example.com"]}
    accepted = api.post("/emails/send", mail(**shown, envelope=["ada@example.com", "Bob <bob@example.com>"]))
    email = api.get(f"/emails/{accepted.json()['id']}").json()
    assert (email["to"], [one["email"] for one in email["recipients"]]) == ("list@example.com", shown["bcc"])
    assert api.post("/emails/send", mail(**shown, envelope=None)).status_code == 202
    for envelope, codes in (
        ("eve@example.com", {"envelope": "not_addressed"}),
        ([], {"envelope": "min_length"}),
        (["ada@example.com", "eve"], {"envelope[1]": "invalid_email"}),
    ):
        assert field_codes(api.post("/emails/send", mail(**shown, envelope=envelope))) == codes
    assert Recipient.objects.count() == 2 + 3


@each(("field", "edge", "beyond"), [
    ("subject", "s" * 998, "s" * 999), ("html", "h" * MIB, "h" * (MIB + 1)),
    ("html", "é" * (MIB // 2), "é" * (MIB // 2) + "e"), ("text", "t" * MIB, "t" * (MIB + 1)),
    ("tags", ["t"] * 10, ["t"] * 11), ("metadata", {"k": "v" * 9992}, {"k": "v" * 9993}),
    ("idempotencyKey", "k" * 255, "k" * 256),
])  # fmt: skip
def test_a_limit_is_inclusive_and_one_more_is_refused(api: Api, field, edge, beyond):
    assert api.post("/emails/send", mail(**{field: edge})).status_code == 202
    assert field_codes(api.post("/emails/send", mail(**{field: beyond})))[field]


def test_a_tag_has_1_to_255_characters_and_to_one_address(api: Api):
    assert field_codes(api.post("/emails/send", mail(to=[])))["to"] == "min_length"
    assert api.post("/emails/send", mail(tags=["t" * 255])).status_code == 202
    assert field_codes(api.post("/emails/send", mail(tags=["t" * 256])))["tags[0]"] == "max_length"
    assert field_codes(api.post("/emails/send", mail(tags=[""])))["tags[0]"] == "blank"


@each("sender", ["hi@other.example", "hi@mail.alice.example", "hi@example", "hi@alice.example.com"])
def test_a_sender_from_an_unregistered_domain_is_refused(api: Api, sender):
    response = api.post("/emails/send", mail(**{"from": sender}))
    assert response.status_code == 422
    if response.json()["code"] != "validation_error":
        assert response.json()["code"] == "domain_not_registered"
        assert response.json()["domain"] == sender.partition("@")[2]
    assert not Email.objects.exists()


@each("sender", ["x@bob.example", '"x@alice.example" <x@evil.example>'])
def test_neither_a_domain_of_another_workspace_nor_one_in_a_display_name_counts(api: Api, bobs_api: Api, sender):
    assert api.post("/emails/send", mail(**{"from": sender})).json()["code"] == "domain_not_registered"


def test_an_exhausted_quota_is_429_and_writes_nothing(api: Api, alice):
    alice.workspace.plan = "free"
    alice.workspace.save(update_fields=["plan"])
    api.post("/emails/send", mail())
    Usage.objects.update(used=500)
    response = api.post("/emails/send", mail(idempotencyKey="k"))
    assert (response.status_code, response.json()["code"]) == (429, "quota_exceeded")
    problem = response.json()
    assert (problem["limit"], problem["used"], problem["requested"]) == (500, 500, 1)
    assert "Retry-After" not in response
    assert Email.objects.count() == 1
    assert api.get("/me").json()["quota"]["remaining"] == 0
    Usage.objects.update(used=499)
    assert api.post("/emails/send", mail(idempotencyKey="k")).status_code == 202, "a refused request uses no key up"


def test_sending_takes_few_statements(api: Api, django_assert_max_num_queries):
    api.post("/emails/send", mail())
    # Includes savepoints of the test transaction.
    with django_assert_max_num_queries(7):
        api.post("/emails/send", mail(to=addresses(50)))
