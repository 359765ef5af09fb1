"""Warnings about the content of accepted emails."""

import pytest

from core.delivery.message.html import MAX_TRACKED_LINKS
from emails.accept.content_warnings import LITTLE_TEXT
from tests.conftest import Api, mail
from tests.rows import each

pytestmark = pytest.mark.django_db

LINK = '<a href="https://a.example/">x</a>'
IMAGE = '<a href="https://a.example/"><img src="https://a.example/a.png" alt="Autumn sale"></a>'
# Words of four characters, and a space that does not count.
TEXT = "word " * (LITTLE_TEXT // 4)


def warnings(response) -> list[str]:
    return [warning["code"] for warning in response.json().get("warnings", [])]


def send_template(api: Api, html: str, **fields):
    api.post("/templates", {"name": "T", "alias": "t", "subject": "S", "htmlContent": html})
    return api.post("/emails/send", mail(html=None, templateId="t", **fields))


class TestLinks:
    def test_more_than_500_links_cause_a_warning(self, api: Api):
        (warning,) = api.post("/emails/send", mail(html=LINK * (MAX_TRACKED_LINKS + 1))).json()["warnings"]
        assert warning == {
            "code": "links_untracked",
            "message": "The HTML has more than 500 links. The first 500 are tracked, the others stay unchanged.",
        }

    def test_500_links_or_more_without_click_tracking_cause_no_warning(self, api: Api):
        for body in (mail(html=LINK * 500), mail(html=LINK * 501, trackClicks=False)):
            assert warnings(api.post("/emails/send", body)) == []

    def test_a_dry_run_and_a_template_warn_too(self, api: Api):
        html = LINK * (MAX_TRACKED_LINKS + 1)
        assert warnings(api.post("/emails/send", mail(html=html, dryRun=True))) == ["links_untracked"]
        looped = "{{#each items}}" + LINK + "{{/each}}"
        assert warnings(send_template(api, looped, templateData={"items": [0] * 501})) == ["links_untracked"]

    def test_a_batch_warns_once(self, api: Api):
        api.post(
            "/templates", {"name": "T", "alias": "t", "subject": "S", "htmlContent": LINK * (MAX_TRACKED_LINKS + 1)}
        )
        recipients = [{"to": f"u{number}@example.com"} for number in range(3)]
        body = {"from": "x@alice.example", "templateId": "t", "recipients": recipients}
        assert warnings(api.post("/emails/batch", body)) == ["links_untracked"]


class TestText:
    def test_a_linked_image_with_little_text_causes_a_warning_with_advice(self, api: Api):
        (warning,) = api.post("/emails/send", mail(html=f"<style>{TEXT}</style><p>Hi</p>{IMAGE}")).json()["warnings"]
        assert warning["code"] == "low_text_ratio"
        assert "Write more text" in warning["message"]
        assert "trackOpens" in warning["message"]

    @each("html", [f"{IMAGE}<p>{TEXT}</p>", "<p>Your code is 123456.</p>", f"<p>{TEXT}</p>{IMAGE}"])
    def test_enough_text_or_no_image_causes_none(self, api: Api, html):
        assert warnings(api.post("/emails/send", mail(html=html))) == []

    def test_one_character_less_is_too_little(self, api: Api):
        assert warnings(api.post("/emails/send", mail(html=f"{IMAGE}<p>{TEXT[:-2]}</p>"))) == ["low_text_ratio"]

    def test_a_template_warns_too(self, api: Api):
        assert warnings(send_template(api, f"<p>Hello {{{{name}}}}</p>{IMAGE}", templateData={"name": "Ada"})) == [
            "low_text_ratio"
        ]


@each("tag", ["a\nb", "a\tb", "a\u2028b", "\u202eb"])
def test_control_characters_in_tags_are_refused(api: Api, tag):
    response = api.post("/emails/send", mail(tags=["fine", tag]))
    assert response.status_code == 422
    assert [(error["field"], error["code"]) for error in response.json()["errors"]] == [("tags[1]", "control")]
