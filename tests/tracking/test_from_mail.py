"""From an accepted email to what its recipient does with the message that arrives."""

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
from django.test import Client
from selectolax.lexbor import LexborHTMLParser

from emails.models import Email, Recipient
from emails.sending import queue
from emails.sending.jobs import load_jobs
from emails.sending.outgoing_messages import build_message
from suppressions.models import Suppression
from tests.conftest import Api, mail
from tests.tracking.conftest import BROWSER, path_of
from tracking.recorder import recorder

pytestmark = pytest.mark.django_db

HTML = (
    '<p>Hi <a href="https://shop.example/?a=1&amp;b=2">shop</a>, <a href="mailto:hi@alice.example">write</a>, '
    '<a href="https://shop.example/plain" data-no-track>plain</a></p>'
)


def arrived(api: Api, **fields: Any) -> list[EmailMessage]:
    """Send an email; return the message of each recipient."""
    assert api.post("/emails/send", mail(html=HTML, **fields)).status_code == 202
    parcels = sorted(load_jobs(queue.Cursor().claim(10), room=1_000_000), key=lambda parcel: parcel.address)
    return [message_from_bytes(build_message(parcel).message(), policy=default) for parcel in parcels]


def html_of(message: EmailMessage) -> LexborHTMLParser:
    return LexborHTMLParser(message.get_body(["html"]).get_content())


def hrefs(message: EmailMessage) -> list[str]:
    return [link.attributes["href"] for link in html_of(message).css("a")]


def visit(url: str) -> Any:
    response = Client().get(path_of(url), headers={"user-agent": BROWSER})
    recorder.flush()
    return response


def test_the_links_of_a_message_lead_where_they_led_and_are_told(api: Api):
    (message,) = arrived(api)
    shop, write, plain, unsubscribe = hrefs(message)
    assert (write, plain) == ("mailto:hi@alice.example", "https://shop.example/plain")
    assert visit(shop)["Location"] == "https://shop.example/?a=1&b=2"
    assert visit(html_of(message).css_first("img").attributes["src"]).status_code == 200
    email = Email.objects.get()
    assert email.status == "clicked"
    events = api.get(f"/emails/{email.id}/events").json()
    assert [event["eventType"] for event in events["data"] if event["eventType"] in {"opened", "clicked"}] == [
        "clicked",
        "opened",
    ]
    assert visit(unsubscribe).status_code == 200
    assert not Suppression.objects.exists()


def test_one_click_of_a_mail_reader_unsubscribes(api: Api):
    (message,) = arrived(api)
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    url = message["List-Unsubscribe"].strip(" <>")
    assert url == hrefs(message)[-1]
    assert url in message.get_body(["plain"]).get_content()
    signed = message["DKIM-Signature"].lower()
    assert "list-unsubscribe:" in signed
    assert "list-unsubscribe-post" in signed
    Client().post(path_of(url), "List-Unsubscribe=One-Click", content_type="application/x-www-form-urlencoded")
    assert Suppression.objects.get().email == "ada@example.com"


def test_every_recipient_has_links_of_his_own(api: Api):
    ada, bob = arrived(api, to=["ada@example.com"], bcc=["bob@example.com"])
    assert not set(hrefs(ada)) & set(hrefs(bob)) - {"mailto:hi@alice.example", "https://shop.example/plain"}
    visit(hrefs(bob)[0])
    states = dict(Recipient.objects.values_list("address", "state"))
    assert states == {"ada@example.com": "queued", "bob@example.com": "clicked"}


def test_a_sender_who_does_not_track_keeps_his_html(api: Api):
    (message,) = arrived(api, trackOpens=False, trackClicks=False)
    assert hrefs(message)[:-1] == [
        "https://shop.example/?a=1&b=2",
        "mailto:hi@alice.example",
        "https://shop.example/plain",
    ]
    assert not html_of(message).css("img")
    assert message.get_body(["html"]).get_content().startswith(HTML)


def test_opens_and_clicks_are_tracked_apart(api: Api):
    (message,) = arrived(api, trackOpens=False)
    assert "/t/c/" in hrefs(message)[0]
    assert not html_of(message).css("img")


def test_what_the_api_shows_has_neither_links_of_ours_nor_a_footer(api: Api):
    arrived(api)
    assert api.get(f"/emails/{Email.objects.get().id}").json()["htmlContent"] == HTML
