"""`/v1/streams`, and the stream of an email."""

from dataclasses import replace

import pytest

from core.delivery.transports.transports_file import TransportRoute, Transports, TransportSpec
from core.workspaces.key_limits import read_limits
from emails.models import Email, QueueEntry
from streams.models import Stream
from tests.conftest import Account, Api, code_of, mail, make_key
from tests.rows import each

pytestmark = pytest.mark.django_db
NEWSLETTER = {"id": "newsletter", "name": "Newsletter", "kind": "bulk"}


@pytest.fixture
def newsletter(api: Api) -> dict:
    response = api.post("/streams", NEWSLETTER)
    assert response.status_code == 201, response.text
    return response.json()


def test_main_exists_from_the_start(api: Api):
    (main,) = api.get("/streams").json()["data"]
    assert (main["id"], main["kind"], main["scope"], main["unsubscribe"]) == (
        "main", "transactional", "workspace", "link",
    )  # fmt: skip
    assert api.get("/streams/main").json() == main
    assert not Stream.objects.exists()


def test_a_bulk_stream_is_public_and_of_low_priority(newsletter):
    assert (newsletter["public"], newsletter["priority"], newsletter["scope"]) == (True, "low", "stream")
    assert newsletter["ignoresUnsubscribes"] is False


def test_a_stream_without_unsubscribes_ignores_them(api: Api):
    stream = api.post("/streams", {"id": "alerts", "name": "Alerts", "unsubscribe": "none"}).json()
    assert (stream["ignoresUnsubscribes"], stream["public"], stream["priority"]) == (True, False, "normal")


@each(
    ("fields", "expected"),
    [
        (NEWSLETTER, (409, "stream_exists")),
        ({**NEWSLETTER, "id": "main"}, (409, "stream_exists")),
        ({**NEWSLETTER, "id": "x", "unsubscribe": "none"}, (422, "invalid_stream")),
        ({**NEWSLETTER, "id": "X"}, (422, "validation_error")),
        ({**NEWSLETTER, "id": 7}, (422, "validation_error")),
        ({**NEWSLETTER, "id": "x" * 41}, (422, "validation_error")),
        ({**NEWSLETTER, "id": "x", "kind": "spam"}, (422, "validation_error")),
        ({**NEWSLETTER, "id": "x", "name": "n" * 101}, (422, "validation_error")),
        # Which str.strip() removes.
        ({**NEWSLETTER, "id": "x", "name": "News\x1c"}, (422, "validation_error")),
        ({**NEWSLETTER, "id": "x", "transportRoute": "fast"}, (422, "transport_route_not_allowed")),
        ({**NEWSLETTER, "id": "x", "transportRoute": 1}, (422, "validation_error")),
    ],
)
def test_invalid_streams_are_refused(api: Api, newsletter, fields, expected):
    assert code_of(api.post("/streams", fields)) == expected


@each("changes", [{"ownBounces": True}, {"ignoresUnsubscribes": True}, {"scope": "stream"}])
def test_main_does_what_the_service_document_says(api: Api, changes):
    response = api.patch("/streams/main", changes)
    assert code_of(response) == (422, "invalid_stream")
    assert response.json()["field"] in changes


def test_the_operator_can_demand_the_link(api: Api, settings):
    settings.STREAMS_WITHOUT_LINK = "deny"
    assert code_of(api.post("/streams", {"id": "a", "name": "A", "unsubscribe": "headers"})) == (422, "invalid_stream")


def test_a_workspace_has_at_most_twenty_streams(api: Api):
    for number in range(19):
        assert api.post("/streams", {"id": f"s{number}", "name": "S"}).status_code == 201
    assert code_of(api.post("/streams", {"id": "more", "name": "S"})) == (403, "plan_limit_reached")
    assert len(api.get("/streams", {"limit": 100}).json()["data"]) == 20


def test_the_kind_of_a_stream_cannot_be_changed(api: Api, newsletter):
    assert code_of(api.patch("/streams/newsletter", {"kind": "transactional"})) == (422, "validation_error")
    changed = api.patch("/streams/newsletter", {"name": "News", "trackOpens": False}).json()
    assert (changed["name"], changed["trackOpens"], changed["kind"]) == ("News", False, "bulk")


def test_main_can_be_named_but_stays_main(api: Api):
    assert api.patch("/streams/main", {"name": "Shop"}).json()["name"] == "Shop"
    assert [stream["name"] for stream in api.get("/streams").json()["data"]] == ["Shop"]
    assert code_of(api.post("/streams/main/archive", {})) == (422, "invalid_stream")


def test_an_email_cannot_be_sent_in_a_stream_of_another_workspace(api: Api, bob: Account):
    Stream.objects.create(workspace=bob.workspace, slug="secret", name="Secret")
    assert code_of(api.post("/emails/send", mail(stream="secret"))) == (422, "stream_not_found")


def test_an_email_takes_tracking_and_priority_of_its_stream(api: Api, newsletter):
    api.patch("/streams/newsletter", {"trackOpens": False})
    sent = api.post("/emails/send", mail(stream="newsletter")).json()
    email = Email.objects.get(id=sent["id"])
    assert (email.stream, email.track_opens, email.track_clicks) == ("newsletter", False, True)
    assert QueueEntry.objects.get().rank == 2
    assert api.get(f"/emails/{sent['id']}").json()["stream"] == "newsletter"


def test_an_email_without_a_stream_looks_as_before(api: Api):
    sent = api.post("/emails/send", mail()).json()
    assert "stream" not in api.get(f"/emails/{sent['id']}").json()
    assert Email.objects.get().stream == "main"


def test_an_email_can_choose_its_tracking(api: Api, newsletter):
    api.post("/emails/send", mail(stream="newsletter", trackClicks=False))
    assert Email.objects.get().track_clicks is False


def test_an_archived_stream_accepts_nothing(api: Api, newsletter):
    assert api.post("/streams/newsletter/archive", {}).json()["archivedAt"]
    assert code_of(api.post("/emails/send", mail(stream="newsletter"))) == (422, "stream_archived")
    assert api.post("/streams/newsletter/unarchive", {}).json()["archivedAt"] is None
    assert api.post("/emails/send", mail(stream="newsletter")).status_code == 202


def test_a_key_can_be_limited_to_streams(api: Api, alice: Account, newsletter):
    api.post("/streams", {"id": "receipts", "name": "Receipts"})
    one = Api(make_key(alice.workspace, "sending_access", limits=read_limits(streams=["newsletter"])))
    assert one.post("/emails/send", mail()).status_code == 202
    assert Email.objects.get().stream == "newsletter"
    assert code_of(one.post("/emails/send", mail(stream="main"))) == (403, "stream_not_allowed")
    two = Api(make_key(alice.workspace, "sending_access", limits=read_limits(streams=["newsletter", "receipts"])))
    assert code_of(two.post("/emails/send", mail())) == (403, "stream_not_allowed")
    receipts = Api(make_key(alice.workspace, "sending_access", limits=read_limits(streams=["receipts"])))
    assert receipts.get("/emails").json()["total"] == 0


class TestTransportRoute:
    @pytest.fixture
    def _routes(self, settings):
        specs = {name: TransportSpec(name=name, kind="direct") for name in ("own", "relay")}
        routes = {"default": TransportRoute("default", ("own",)), "bulk": TransportRoute("bulk", ("relay",))}
        settings.TRANSPORTS = Transports(specs, routes, {"default": ("default", "bulk")})

    @pytest.mark.usefixtures("_routes")
    def test_a_stream_names_a_route_that_the_workspace_may_use(self, api: Api, newsletter):
        assert "transportRoute" not in newsletter
        changed = api.patch("/streams/newsletter", {"transportRoute": "bulk"}).json()
        assert changed["transportRoute"] == "bulk"
        assert api.get("/streams/newsletter").json()["transportRoute"] == "bulk"
        for nothing in (None, ""):
            assert "transportRoute" not in api.patch("/streams/newsletter", {"transportRoute": nothing}).json()

    @pytest.mark.usefixtures("_routes")
    def test_another_route_is_refused_with_the_allowed_ones(self, api: Api, newsletter):
        response = api.patch("/streams/newsletter", {"transportRoute": "fast"})
        assert code_of(response) == (422, "transport_route_not_allowed")
        assert response.json()["allowedRoutes"] == ["default", "bulk"]

    def test_without_named_transports_only_the_usual_route_exists(self, api: Api, newsletter):
        assert api.patch("/streams/newsletter", {"transportRoute": "default"}).status_code == 200
        response = api.patch("/streams/newsletter", {"transportRoute": "bulk"})
        assert code_of(response) == (422, "transport_route_not_allowed")

    @pytest.mark.usefixtures("_routes")
    def test_a_route_of_another_workspace_is_refused(self, api: Api, newsletter, settings, alice):
        settings.TRANSPORTS = replace(
            settings.TRANSPORTS, workspaces={"default": ("bulk",), alice.workspace.id: ("default",)}
        )
        assert code_of(api.patch("/streams/newsletter", {"transportRoute": "bulk"})) == (
            422, "transport_route_not_allowed",
        )  # fmt: skip
