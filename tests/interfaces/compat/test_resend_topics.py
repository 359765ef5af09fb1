"""Topics in Resend's API: public bulk streams."""

import uuid

import pytest

from emails.models import Email
from streams.models import Stream
from suppressions.services import suppress_address
from tests.conftest import Account, Api, make_domain, make_key
from tests.interfaces.compat.conftest import Dialect
from tests.interfaces.compat.test_resend import error
from tests.rows import each

pytestmark = pytest.mark.django_db
NEWS = {"name": "Weekly News", "default_subscription": "opt_in", "description": "Once a week"}
MAIL = {"from": "hi@alice.example", "to": "ada@example.com", "subject": "Hi", "text": "Hi"}


@pytest.fixture
def topic(resend: Dialect) -> str:
    response = resend.post("/topics", NEWS)
    assert response.status_code == 201, response.content
    assert response.json()["object"] == "topic"
    topic_id: str = response.json()["id"]
    return topic_id


def test_a_topic_is_a_public_bulk_stream(resend, topic, key):
    assert str(uuid.UUID(topic)) == topic
    stream = Api(key).get("/streams/weekly-news").json()
    assert (stream["kind"], stream["public"], stream["description"]) == ("bulk", True, "Once a week")
    read = resend.get(f"/topics/{topic}").json()
    assert read.pop("object") == "topic"
    assert (read["name"], read["default_subscription"], read["visibility"]) == ("Weekly News", "opt_in", "public")
    assert resend.get("/topics").json() == {"object": "list", "has_more": False, "data": [read]}


def test_other_streams_are_not_topics(resend, topic, key):
    api = Api(key)
    api.post("/streams", {"id": "receipts", "name": "Receipts", "public": True})
    api.post("/streams", {"id": "quiet", "name": "Quiet", "kind": "bulk", "public": False})
    assert [one["id"] for one in resend.get("/topics").json()["data"]] == [topic]


@each(
    ("change", "name"),
    [
        ({"default_subscription": "opt_out"}, "validation_error"),
        ({"default_subscription": "maybe"}, "validation_error"),
        ({"default_subscription": None}, "missing_required_field"),
        ({"name": None}, "missing_required_field"),
        ({"name": "n" * 101}, "validation_error"),
        ({"description": 7}, "validation_error"),
        ({"visibility": "private"}, "validation_error"),
        ({"visibility": "hidden"}, "validation_error"),
    ],
)
def test_an_invalid_topic_is_refused(resend, change, name):
    assert error(resend.post("/topics", NEWS | change)) == (422, name)
    assert not Stream.objects.exists()


def test_topics_may_have_the_same_name_or_one_without_letters(resend, topic):
    for name in ("Weekly News", "Weekly news!", "新聞", "Main", "n" * 100):
        assert resend.post("/topics", NEWS | {"name": name}).status_code == 201
    slugs = [*Stream.objects.order_by("number").values_list("slug", flat=True)]
    assert slugs == ["weekly-news", "weekly-news-2", "weekly-news-3", "stream", "main-2", "n" * 36]


def test_a_topic_is_changed_and_archived(resend, topic):
    assert resend.call("PATCH", f"/topics/{topic}", {"name": "News"}).json() == {"object": "topic", "id": topic}
    assert resend.get(f"/topics/{topic}").json()["name"] == "News"
    assert error(resend.call("PATCH", f"/topics/{topic}", {"visibility": "private"})) == (422, "validation_error")
    removed = resend.call("DELETE", f"/topics/{topic}").json()
    assert removed == {"object": "topic", "id": topic, "deleted": True}
    assert Stream.objects.get().archived_at
    assert error(resend.get(f"/topics/{topic}")) == (404, "not_found")
    assert resend.get("/topics").json()["data"] == []
    assert error(resend.post("/emails", MAIL | {"topic_id": topic})) == (422, "validation_error")


def test_an_email_is_about_its_topic(resend, topic):
    for topic_id in (topic, "weekly-news"):
        sent = resend.post("/emails", MAIL | {"topic_id": topic_id}).json()
        assert Email.objects.get(stream="weekly-news")
        assert resend.get(f"/emails/{sent['id']}").json()["topic_id"] == topic
        Email.objects.all().delete()
    sent = resend.post("/emails", MAIL | {"topic_id": None}).json()
    assert Email.objects.get().stream == "main"
    assert resend.get(f"/emails/{sent['id']}").json()["topic_id"] is None


def test_each_email_of_a_batch_has_its_topic(resend, topic, django_assert_max_num_queries):
    bodies = [MAIL | {"topic_id": topic}, MAIL, MAIL | {"topic_id": topic}]
    assert resend.post("/emails/batch", bodies).status_code == 200
    assert sorted(Email.objects.values_list("stream", flat=True)) == ["main", "weekly-news", "weekly-news"]
    mixed = [MAIL, MAIL | {"topic_id": "7b1d6c1e-3f0a-4a53-9c61-0d1f6f6c9a10"}]
    assert error(resend.post("/emails/batch", mixed)) == (422, "validation_error")
    body = resend.post("/emails/batch", mixed, x_batch_validation="permissive").json()
    assert (len(body["data"]), body["errors"][0]["index"]) == (1, 1)
    assert "topic_id" in body["errors"][0]["message"]


@each("given", ["nothing", "7b1d6c1e-3f0a-4a53-9c61-0d1f6f6c9a10", 7, ["a"], {"a": 1}])
def test_an_unknown_topic_is_refused(resend, given):
    assert error(resend.post("/emails", MAIL | {"topic_id": given})) == (422, "validation_error")
    assert not Email.objects.exists()


def test_a_topic_of_another_workspace_cannot_be_used(resend, topic, bob: Account):
    make_domain(bob.workspace, "bob.example")
    stranger = Dialect("resend", make_key(bob.workspace))
    mail = MAIL | {"from": "hi@bob.example"}
    for given in (topic, "weekly-news"):
        assert error(stranger.post("/emails", mail | {"topic_id": given})) == (422, "validation_error")


def test_an_unsubscribe_from_a_topic_is_no_suppression_of_all_emails(resend, topic, alice):
    suppress_address(alice.workspace, address="ada@example.com", reason="unsubscribe", stream="weekly-news")
    suppress_address(alice.workspace, address="bob@example.com", reason="unsubscribe")
    assert [one["email"] for one in resend.get("/suppressions").json()["data"]] == ["bob@example.com"]
    assert error(resend.get("/suppressions/ada@example.com")) == (404, "not_found")
