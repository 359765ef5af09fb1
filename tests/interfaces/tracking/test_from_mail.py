"""Tracking from an accepted email to the links in the delivered message."""

from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any

import pytest
from django.test import Client
from selectolax.lexbor import LexborHTMLParser

from emails.models import Email, Recipient
from emails.sending.jobs import load_jobs
from emails.sending.outgoing_messages import build_message
from interfaces.tracking.recorder import recorder
from suppressions.models import Suppression
from tests.conftest import Api, mail
from tests.emails.builders import claim_entries
from tests.interfaces.tracking.conftest import BROWSER, path_of

pytestmark = pytest.mark.django_db

HTML = (
    '<p>Hi <a href="https://shop.example/?a=1&amp;b=2">shop</a>, <a href="mailto:hi@alice.example">write</a>, '
    '<a href="https://shop.example/plain" data-no-track>plain</a></p>'
)


def send_and_build(api: Api, **fields: Any) -> list[EmailMessage]:
    """Send an email and return the message of each recipient."""
    assert api.post("/emails/send", mail(html=HTML, **fields)).status_code == 202
    jobs = sorted(load_jobs(claim_entries(10), memory_bytes=1_000_000), key=lambda job: job.address)
    return [message_from_bytes(build_message(job).to_bytes(), policy=default) for job in jobs]


def html_of(message: EmailMessage) -> LexborHTMLParser:
    return LexborHTMLParser(message.get_body(["html"]).get_content())


def hrefs(message: EmailMessage) -> list[str]:
    return [link.attributes["href"] for link in html_of(message).css("a")]


def visit(url: str) -> Any:
    response = Client().get(path_of(url), headers={"user-agent": BROWSER})
    recorder.flush()
    return response


def test_tracked_links_redirect_to_their_targets_and_are_recorded(api: Api):
    (message,) = send_and_build(api)
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


def test_a_one_click_unsubscribe_of_a_mail_client_works(api: Api):
    (message,) = send_and_build(api)
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    url = message["List-Unsubscribe"].strip(" <>")
    assert url == hrefs(message)[-1]
    assert url in message.get_body(["plain"]).get_content()
    signed = message["DKIM-Signature"].lower()
    assert "list-unsubscribe:" in signed
    assert "list-unsubscribe-post" in signed
    Client().post(path_of(url), "List-Unsubscribe=One-Click", content_type="application/x-www-form-urlencoded")
    assert Suppression.objects.get().email == "ada@example.com"


def test_each_recipient_has_separate_links(api: Api):
    ada, bob = send_and_build(api, to=["ada@example.com"], bcc=["bob@example.com"])
    assert not set(hrefs(ada)) & set(hrefs(bob)) - {"mailto:hi@alice.example", "https://shop.example/plain"}
    visit(hrefs(bob)[0])
    states = dict(Recipient.objects.values_list("address", "state"))
    assert states == {"ada@example.com": "queued", "bob@example.com": "clicked"}


def test_without_tracking_the_html_stays_unchanged(api: Api):
    (message,) = send_and_build(api, trackOpens=False, trackClicks=False)
    wanted = ["https://shop.example/?a=1&b=2", "mailto:hi@alice.example", "https://shop.example/plain"]
    assert hrefs(message)[:-1] == wanted
    assert not html_of(message).css("img")
    assert message.get_body(["html"]).get_content().startswith(HTML)


def test_opens_and_clicks_are_tracked_independently(api: Api):
    (message,) = send_and_build(api, trackOpens=False)
    assert "/t/c/" in hrefs(message)[0]
    assert not html_of(message).css("img")


def test_the_api_returns_the_html_without_tracked_links_and_footer(api: Api):
    send_and_build(api)
    assert api.get(f"/emails/{Email.objects.get().id}").json()["htmlContent"] == HTML
