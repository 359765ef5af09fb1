"""Sensitive emails: no interface shows their content, at any time; they are sent, tried again and emptied."""

import json

import pytest
from django.test import Client

from emails.errors import ContentNotKept
from emails.models import Attachment, Content, Email, Recipient
from emails.sending.jobs import MEMORY_BYTES, load_jobs
from emails.sending.outgoing_messages import build_message, rebuild_message
from emails.tasks import remove_contents
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.inbox.server import store_mail
from tests.conftest import Account, Api, mail
from tests.console.dashboard.conftest import signed_in
from tests.emails.builders import LATER, claim_entries, deliver_all, make_ready, send
from tests.rows import each

pytestmark = pytest.mark.django_db


@pytest.fixture
def owner(alice: Account) -> Client:
    return signed_in(alice.owner)


MARK = "xsecretx"
FILE = {"filename": f"{MARK}.txt", "content": "QQ=="}
CONTENT = {"html": f'<p>{MARK} <a href="https://example.com/{MARK}">Reset</a></p>', "text": MARK, "attachments": [FILE]}


def test_an_email_a_stream_and_a_template_make_an_email_sensitive(api: Api):
    assert api.post("/streams", {"id": "codes", "name": "Codes", "sensitive": True}).json()["sensitive"]
    template = {"name": "t", "subject": "s", "htmlContent": "<p>{{code}}</p>", "alias": "code", "sensitive": True}
    assert api.post("/templates", template).json()["sensitive"]
    with_template = {"html": None, "templateId": "code", "templateData": {"code": MARK}}
    ids = [send(api, sensitive=True), send(api, stream="codes"), send(api, **with_template)]
    # None of the three can make it less so.
    ids += [send(api, stream="codes", sensitive=False), send(api, **with_template, sensitive=False)]
    batch = {"from": "x@alice.example", "templateId": "code", "recipients": [{"to": "a@example.com"}]}
    ids += api.post("/emails/batch", batch).json()["ids"]
    api.patch("/templates/code", {"sensitive": False})
    ids += api.post("/emails/batch", {**batch, "sensitive": True}).json()["ids"]
    for email_id in ids:
        body = api.get(f"/emails/{email_id}").json()
        assert (body["sensitive"], body["contentNotKept"], body["htmlContent"], body["text"]) == (True, True, "", "")
    usual = api.get(f"/emails/{send(api, **with_template)}").json()
    assert MARK in usual["htmlContent"]
    assert not {"sensitive", "contentNotKept"} & usual.keys()


def test_no_interface_shows_the_content_from_acceptance_on(api: Api, owner: Client):
    email_id = send(api, **CONTENT, sensitive=True)
    for _ in range(2):
        answers = [api.get(f"/emails/{email_id}{path}") for path in ("", "/events", "/attachments")]
        answers += [api.get("/emails"), api.get("/emails/export")]
        page = f"/dashboard/emails/{email_id}/"
        answers += [
            owner.get(f"{page}{path}") for path in ("", "panel/", "preview/", "message/", "source/", "attachment/")
        ]
        assert [answer.status_code for answer in answers] == [200] * 7 + [404] * 4
        assert not [answer for answer in answers if MARK in body_of(answer)]
        assert any(text in body_of(answers[5]) for text in ("nobody can read its content", "was removed at"))
        with pytest.raises(ContentNotKept):
            rebuild_message(Recipient.objects.select_related("email").get())
        deliver_all()
        remove_contents()
    assert api.get(f"/emails/{email_id}/attachments").json() == {"data": []}


def body_of(answer) -> str:
    if answer.streaming:
        return b"".join(answer.streaming_content).decode()
    return answer.content.decode()


def test_a_resend_is_refused_before_and_after_the_outcome(api: Api, owner: Client):
    email_id = send(api, sensitive=True)
    for _ in range(2):
        response = api.post(f"/emails/{email_id}/resend")
        assert (response.status_code, response.json()["code"]) == (409, "content_not_kept")
        owner.post(f"/dashboard/emails/{email_id}/resend/", {"nonce": "n"})
        assert Email.objects.count() == 1
        deliver_all()
        remove_contents()


def test_it_is_tried_again_with_its_content_and_emptied_after_the_outcome(api: Api):
    send(api, **CONTENT, sensitive=True)
    for _ in range(2):
        claims = claim_entries()
        (job,) = load_jobs(claims, memory_bytes=MEMORY_BYTES)
        source = build_message(job).to_bytes()
        assert source.count(MARK.encode()) >= 3
        # The URL of a tracked link would be in the event of a click.
        assert b"/t/c/" not in source
        make_ready()
        deliver_all(LATER)
        make_ready()
        remove_contents()
    deliver_all()
    remove_contents()
    assert not Content.objects.exists()
    assert not Attachment.objects.exists()
    email = Email.objects.get()
    assert MARK not in json.dumps([str(value) for value in vars(email).values()])


@pytest.mark.django_db(transaction=True)
def test_the_inbox_stores_only_the_header(api: Api, owner: Client):
    send(api, **CONTENT, sensitive=True)
    recipient = Recipient.objects.get()
    source = claimed_source()
    assert store_mail(source, "a@alice.example", [recipient.address]).startswith("250")
    caught = CaughtMail.objects.get()
    assert (caught.keeps_content, MARK.encode() in bytes(caught.source)) == (False, False)
    page = owner.get(f"/dashboard/inbox/{caught.id}/")
    assert page.status_code == 200
    assert "is not kept" in page.content.decode()
    assert b"Subject" in bytes(caught.source)


@pytest.mark.django_db(transaction=True)
def test_contentRetention_removes_the_copy_in_the_inbox(api: Api, alice: Account):  # noqa: N802
    api.post("/streams", {"id": "codes", "name": "Codes", "contentRetention": 0})
    for fields in ({"stream": "codes"}, {}):
        send(api, **CONTENT, **fields)
    for recipient in Recipient.objects.select_related("email"):
        store_mail(rebuild_message(recipient), "a@alice.example", [recipient.address])
    assert all(MARK.encode() in bytes(caught.source) for caught in CaughtMail.objects.all())
    deliver_all()
    remove_contents()
    found = {caught.keeps_content: MARK.encode() in bytes(caught.source) for caught in CaughtMail.objects.all()}
    assert found == {True: True, False: False}


def claimed_source() -> bytes:
    (job,) = load_jobs(claim_entries(), memory_bytes=MEMORY_BYTES)
    return build_message(job).to_bytes()


@each("value", ["yes", 1])
def test_only_true_and_false_are_valid(api: Api, value):
    assert api.post("/emails/send", mail(sensitive=value)).status_code == 422
