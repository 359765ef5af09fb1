"""Limits of API keys: their creation, networks behind proxies, and requests per second."""

import json

import pytest
from django.core.management import CommandError, call_command

from core.api.errors import InvalidFields
from core.lib.token_bucket import memory_buckets
from core.workspaces.key_limits import KeyLimits, read_limits
from core.workspaces.models import ApiKey, AuditEntry
from tests.conftest import Account, Api, code_of, field_codes, make_domain, make_key
from tests.rows import each

pytestmark = pytest.mark.django_db

LIMITS = {
    "domains": ["shop.example"],
    "networks": ["203.0.113.0/24", "2001:db8::/32"],
    "templates": ["welcome"],
    "requestsPerSecond": 5,
}
NO_LIMITS = {"domains": [], "networks": [], "templates": [], "requestsPerSecond": None}


@pytest.fixture
def owner_api(alice: Account) -> Api:
    return Api(make_key(alice.workspace, "workspace_admin"))


def create(api: Api, account: Account, **fields):
    body = {"name": "Shop", "scope": "sending_access", **fields}
    return api.post(f"/admin/workspaces/{account.workspace.id}/api-keys", body)


class TestCreation:
    def test_the_management_api_sets_and_shows_limits(self, owner_api, alice):
        created = create(owner_api, alice, limits=LIMITS).json()
        assert created["limits"] == LIMITS
        listed = owner_api.get(f"/admin/workspaces/{alice.workspace.id}/api-keys").json()["data"]
        assert {one["name"]: one["limits"] for one in listed} == {"Shop": LIMITS, "test": NO_LIMITS}
        assert AuditEntry.objects.filter(about__endswith="sending_access, limited").exists()

    def test_a_whole_number_may_be_written_with_a_decimal_point(self, owner_api, alice):
        limits = create(owner_api, alice, limits={"requestsPerSecond": 5.0}).json()["limits"]
        assert json.dumps(limits["requestsPerSecond"]) == "5"

    def test_me_shows_the_limits(self, alice):
        limits = read_limits(networks=["127.0.0.1"], requests_per_second=7)
        shown = Api(make_key(alice.workspace, "read_only", limits=limits)).get("/me").json()["key"]["limits"]
        assert shown == {**NO_LIMITS, "networks": ["127.0.0.1/32"], "requestsPerSecond": 7}

    def test_streams_are_shown_where_they_are_limited(self, owner_api, alice):
        created = create(owner_api, alice, limits={"streams": ["receipts", "alerts", "receipts"]}).json()
        assert created["limits"] == {**NO_LIMITS, "streams": ["receipts", "alerts"]}
        assert Api(created["key"]).get("/me").json()["key"]["limits"] == created["limits"]

    @each(
        ("limits", "fields"),
        [
            ({"streams": ["Receipts"]}, {"limits.streams[0]": "invalid_entry"}),
            ({"streams": ["r" * 41]}, {"limits.streams[0]": "max_length"}),
            ({"domains": ["no domain"]}, {"limits.domains[0]": "invalid_entry"}),
            ({"domains": "shop.example"}, {"limits.domains": "invalid_type"}),
            ({"networks": ["203.0.113.7/24", "x", "10.0.0.0/8"]}, dict.fromkeys(["limits.networks[0]",
             "limits.networks[1]"], "invalid_entry")),
            ({"networks": ["::ffff:203.0.113.0/120"]}, {"limits.networks[0]": "invalid_entry"}),
            ({"templates": ["a\u0007b"]}, {"limits.templates[0]": "invalid_entry"}),
            ({"requestsPerSecond": 0}, {"limits.requestsPerSecond": "min_value"}),
            ({"requestsPerSecond": 1001}, {"limits.requestsPerSecond": "max_value"}),
            ({"requestsPerSecond": "many"}, {"limits.requestsPerSecond": "invalid"}),
            ({"requestsPerSecond": 5.5}, {"limits.requestsPerSecond": "invalid"}),
            ({"domain": ["shop.example"]}, {"limits.domain": "unknown_field"}),
            ({"networks": ["10.0.0.1"] * 101}, {"limits.networks": "max_length"}),
        ],
    )  # fmt: skip
    def test_invalid_limits_are_refused(self, owner_api, alice, limits, fields):
        assert field_codes(create(owner_api, alice, limits=limits)) == fields
        assert not ApiKey.objects.filter(name="Shop").exists()

    def test_an_address_within_a_network_is_refused_with_the_network(self):
        with pytest.raises(InvalidFields) as refusal:
            read_limits(networks=["203.0.113.7/24"])
        (error,) = refusal.value.members["errors"]
        assert "Give the network, 203.0.113.0/24, or the address alone." in error["detail"]

    @each("scope", ["full_access", "read_only", "workspace_admin"])
    def test_domains_templates_and_streams_require_sending_access(self, owner_api, alice, scope):
        refused = create(owner_api, alice, scope=scope, limits={**LIMITS, "streams": ["receipts"]})
        names = ["limits.domains", "limits.templates", "limits.streams"]
        assert field_codes(refused) == dict.fromkeys(names, "requires_sending_access")
        allowed = {name: LIMITS[name] for name in ("networks", "requestsPerSecond")}
        assert create(owner_api, alice, scope=scope, limits=allowed).status_code == 201

    def test_limits_are_stored_in_the_form_in_which_they_are_compared(self):
        limits = read_limits(domains=["Münster.example"], networks=["192.0.2.1", "192.0.2.1/32", "2001:DB8::/32"])
        assert limits == KeyLimits(("xn--mnster-3ya.example",), ("192.0.2.1/32", "2001:db8::/32"))

    def test_a_restricted_key_creates_no_broader_key(self, alice):
        limits = read_limits(networks=["127.0.0.0/8", "2001:db8::/32"], requests_per_second=500)
        api = Api(make_key(alice.workspace, "workspace_admin", limits=limits))
        both = {"limits.networks": "too_broad", "limits.requestsPerSecond": "too_broad"}
        for broader in ({}, {"networks": ["0.0.0.0/0"]}, {"networks": ["10.0.0.0/8"], "requestsPerSecond": 501},
                        {"networks": ["127.0.0.1", "2001::/16"], "requestsPerSecond": None}):  # fmt: skip
            assert field_codes(create(api, alice, limits=broader)) == both
        assert field_codes(create(api, alice)) == both
        narrower = {"networks": ["127.0.0.1", "2001:db8:1::/48"], "requestsPerSecond": 500}
        assert create(api, alice, scope="workspace_admin", limits=narrower).status_code == 201

    def test_the_command_sets_limits(self, alice, capsys):
        options = {"workspace": alice.workspace.id, "name": "ci", "scope": "sending_access"}
        arguments = ["--domain", "shop.example", "--network", "10.0.0.0/8", "--network", "::1", "--template", "welcome"]
        arguments += ["--stream", "receipts", "--stream", "main"]
        call_command("create_api_key", *arguments, requests_per_second=3, **options)
        key = ApiKey.objects.get(id=json.loads(capsys.readouterr().out)["id"])
        assert key.limits == KeyLimits(
            ("shop.example",), ("10.0.0.0/8", "::1/128"), ("welcome",), 3, streams=("receipts", "main")
        )

    def test_the_command_explains_invalid_limits(self, alice):
        options = {"workspace": alice.workspace.id, "name": "ci", "scope": "read_only"}
        with pytest.raises(CommandError, match="is not a network such as"):
            call_command("create_api_key", "--network", "office", **options)
        with pytest.raises(CommandError, match="Limits only work with the scopes sending_access"):
            call_command("create_api_key", "--domain", "shop.example", **options)


class TestNetworks:
    def call(self, key: str, peer: str, forwarded: str = ""):
        headers = {"authorization": f"Bearer {key}", **({"x-forwarded-for": forwarded} if forwarded else {})}
        return Api().client.get("/v1/me", REMOTE_ADDR=peer, headers=headers)

    @pytest.fixture
    def key(self, alice) -> str:
        return make_key(alice.workspace, limits=read_limits(networks=["203.0.113.0/24", "2001:db8::/32"]))

    @each("peer", ["203.0.113.0", "203.0.113.255", "2001:db8::1", "::ffff:203.0.113.9"])
    def test_an_address_within_is_allowed(self, key, peer):
        assert self.call(key, peer).status_code == 200

    @each("peer", ["203.0.112.255", "203.0.114.0", "2001:db9::1", "::1", "127.0.0.1"])
    def test_an_address_outside_is_refused_and_named(self, key, peer):
        response = self.call(key, peer)
        assert code_of(response) == (403, "network_not_allowed")
        assert response.json()["address"] == peer
        assert response.json()["allowedNetworks"] == ["203.0.113.0/24", "2001:db8::/32"]

    def test_without_an_address_the_key_is_refused(self, key):
        assert code_of(self.call(key, "")) == (403, "network_not_allowed")

    def test_a_trusted_proxy_names_the_client_and_other_peers_do_not(self, key, settings, monkeypatch):
        from config import env

        monkeypatch.setenv("TRUSTED_PROXIES", "10.0.0.0/8")
        settings.TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
        assert self.call(key, "10.0.0.1", "203.0.113.7").status_code == 200
        assert self.call(key, "10.0.0.1", "203.0.113.7, 198.51.100.1").status_code == 403
        assert self.call(key, "10.0.0.1", "198.51.100.1, 203.0.113.7, 10.0.0.2").status_code == 200
        assert self.call(key, "198.51.100.1", "203.0.113.7").status_code == 403
        assert self.call(key, "10.0.0.1").status_code == 403

    def test_a_wrong_secret_is_refused_as_such(self, key):
        wrong = key[:-1] + ("0" if key[-1] != "0" else "1")
        assert code_of(self.call(wrong, "192.0.2.1")) == (401, "invalid_api_key")

    def test_refusals_count_as_failed_authentications(self, key, settings):
        settings.RATE_LIMIT = (1000, 1000)
        memory_buckets.clear()
        codes = set()
        while 429 not in codes:
            codes.add(self.call(key, "198.51.100.201").status_code)
        assert codes == {403, 429}

    def test_the_management_api_checks_the_network(self, alice):
        key = make_key(alice.workspace, "workspace_admin", limits=read_limits(networks=["203.0.113.0/24"]))
        assert code_of(create(Api(key), alice)) == (403, "network_not_allowed")


class TestRates:
    def refused(self, api: Api):
        for _ in range(1000):
            response = api.get("/me")
            if response.status_code == 429:
                return response
        raise AssertionError("the limit was never reached")

    def test_a_key_is_limited_below_its_workspace(self, alice, settings):
        settings.RATE_LIMIT = (1000, 1000)
        api = Api(make_key(alice.workspace, limits=read_limits(requests_per_second=2)))
        assert api.get("/me")["RateLimit-Limit"] == "2"
        refused = self.refused(api)
        assert "This API key can make 2 requests per second" in refused.json()["detail"]
        assert int(refused["Retry-After"]) >= 1
        assert Api(make_key(alice.workspace)).get("/me").status_code == 200

    def test_the_workspace_limits_a_key_with_a_higher_limit(self, alice, settings):
        settings.RATE_LIMIT = (0.001, 2)
        refused = self.refused(Api(make_key(alice.workspace, limits=read_limits(requests_per_second=900))))
        assert "A workspace can make" in refused.json()["detail"]

    def test_a_key_without_a_limit_takes_one_token(self, alice, settings):
        settings.RATE_LIMIT = (0.001, 5)
        make_domain(alice.workspace, "alice.example")
        response = Api(make_key(alice.workspace)).get("/me")
        assert (response["RateLimit-Limit"], response["RateLimit-Remaining"]) == ("5", "4")
