"""`GET /v1/admin/receivers`: the pace of each receiver, for management keys of the installation only."""

import pytest

from emails.models import ReceiverPace
from emails.receivers.changes import pin_rate, suspend_pair
from tests.conftest import Api
from tests.emails.receivers.builders import REPLY, make_limited, make_pair, make_suspended, name_new_address

pytestmark = pytest.mark.django_db
PATH = "/admin/receivers"


def test_each_pair_has_its_state_and_its_numbers(platform: Api):
    google = make_limited("google", accepted=7)
    suspend_pair(make_pair("apple"))
    pin_rate(make_pair("mx.example"), per_minute=30)
    page = platform.get(PATH).json()
    assert (page["total"], page["page"], page["limit"]) == (3, 1, 20)
    by_key = {one["receiver"]: one for one in page["data"]}
    assert page["data"][0]["receiver"] == "apple"
    limited = by_key["google"]
    assert limited.pop("perMinute") >= 1
    assert limited.pop("since")[:16] == limited["repliedAt"][:16]
    assert limited == {
        "receiver": "google",
        "name": "Google",
        "sourceAddress": "192.0.2.1",
        "state": "limited",
        "until": None,
        "connections": 1,
        "allowedConnections": 1,
        "pinnedPerMinute": None,
        "waiting": 0,
        "acceptedToday": 7,
        "slowedToday": 1,
        "warmUpDay": None,
        "perDay": None,
        "listed": False,
        "reply": REPLY,
        "repliedAt": google.signal_at.strftime("%Y-%m-%dT%H:%M:%S.") + f"{google.signal_at.microsecond // 1000:03}Z",
    }
    assert (by_key["apple"]["state"], by_key["apple"]["perMinute"]) == ("stopped", 0)
    assert (by_key["mx.example"]["pinnedPerMinute"], by_key["mx.example"]["perMinute"]) == (30, 30)


def test_a_new_address_has_its_day_and_its_messages(platform: Api, settings):
    name_new_address(settings, days=4)
    make_pair("google", accepted=7)
    ReceiverPace.objects.update(former_rate=60)
    (google,) = platform.get(PATH).json()["data"]
    fields = ("warmUpDay", "perDay", "acceptedToday", "listed", "perMinute")
    assert [google[name] for name in fields] == [5, 250, 7, True, 0]


def test_filters_and_pages(platform: Api):
    make_suspended("yahoo")
    for number in range(3):
        make_pair(f"mx{number}.example")
    assert [one["receiver"] for one in platform.get(f"{PATH}?state=suspended").json()["data"]] == ["yahoo"]
    assert platform.get(f"{PATH}?receiver=.example&limit=2&page=2").json()["total"] == 3
    assert len(platform.get(f"{PATH}?receiver=.example&limit=2&page=2").json()["data"]) == 1
    assert platform.get(f"{PATH}?page=9").json()["data"] == []


@pytest.mark.parametrize("query", ["state=broken", "status=suspended", "page=0"])
def test_refuses_queries_that_it_does_not_have(platform: Api, query):
    assert platform.get(f"{PATH}?{query}").status_code == 422


def test_is_for_keys_of_the_installation(platform: Api, reseller: Api, api: Api, client):
    make_pair("google")
    for refused in (reseller, api):
        response = refused.get(PATH)
        assert (response.status_code, response.json()["code"]) == (403, "insufficient_scope")
    assert client.get(f"/v1{PATH}").status_code == 401
    assert platform.post(PATH, {}).status_code == 405
