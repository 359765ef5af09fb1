"""Footer and headers of the messages of a stream."""

from email import message_from_bytes, policy

import pytest

from emails.models import Recipient
from emails.sending.outgoing_messages import rebuild_message
from tests.conftest import Api, mail

pytestmark = pytest.mark.django_db


def message(api: Api, **stream):
    if stream:
        assert api.post("/streams", {"id": "news", "name": "News & <more>", **stream}).status_code == 201
    sent = api.post("/emails/send", mail(**({"stream": "news"} if stream else {}), text="Hello")).json()
    return message_from_bytes(rebuild_message(Recipient.objects.get(email=sent["id"])), policy=policy.default)


def bodies(parsed) -> tuple[str, str]:
    return tuple(parsed.get_body([kind]).get_content() for kind in ("plain", "html"))


def test_a_bulk_stream_has_a_list_id_and_its_name_in_the_footer(api: Api, alice):
    parsed = message(api, kind="bulk")
    assert parsed["List-Id"] == f"<news.{alice.workspace.id}.alice.example>"
    assert parsed["Feedback-ID"].split(":")[2] == "news"
    assert parsed["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text, html = bodies(parsed)
    assert "No longer want to receive “News & <more>”?" in text
    assert "“News &amp; &lt;more&gt;”" in html


def test_a_stream_with_headers_has_no_footer(api: Api):
    parsed = message(api, unsubscribe="headers")
    assert "/u/" in parsed["List-Unsubscribe"]
    assert not any("nsubscribe" in body for body in bodies(parsed))


def test_a_stream_without_unsubscribes_has_neither(api: Api):
    parsed = message(api, unsubscribe="none")
    assert parsed["List-Unsubscribe"] is None
    assert parsed["List-Unsubscribe-Post"] is None
    assert parsed["List-Id"] is None
    assert not any("nsubscribe" in body for body in bodies(parsed))


def test_main_is_as_before(api: Api):
    parsed = message(api)
    assert parsed["List-Id"] is None
    assert parsed["Feedback-ID"].split(":")[2] == "transactional"
    assert all("No longer want to receive these emails?" in body for body in bodies(parsed))
