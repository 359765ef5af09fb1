"""How fast a workspace may call, and how often an address may fail to say who it is."""

import secrets
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from django.conf import settings as django_settings

from config import env
from domains.views import DomainViewSet
from embedded.servers.redis import start_throw_away
from lib import redis_client, token_bucket
from lib.token_bucket import KEY_PREFIX, Limit, MemoryBuckets, take_token
from tests.conftest import Api, make_key

SLOW = Limit(per_second=1, burst=3)


@pytest.fixture(autouse=True)
def _nothing_is_left():
    token_bucket.memory.clear()
    redis_client._rest_until.clear()


@pytest.fixture
def limited(settings):
    """The limit, with tokens that grow too slowly to grow within a test."""
    settings.RATE_LIMIT = (1, 3)


@pytest.fixture
def own_redis(settings):
    server = start_throw_away()
    settings.REDIS_URL = server.url
    yield server
    if server.is_alive:
        server.process.send_signal(signal.SIGCONT)
    server.stop()


def key_of(account) -> str:
    return f"{KEY_PREFIX}workspace:{account.workspace.id}"


def store() -> redis.Redis:
    return redis.Redis.from_url(django_settings.REDIS_URL)


def empty(key: str) -> None:
    """Take all tokens: a bucket that would be full in the far future counts as empty."""
    store().set(key, 10**16, ex=60)


def let_grow(key: str, *, tokens: int) -> None:
    """Write what a bucket is that was empty just so long ago."""
    seconds, microseconds = store().time()
    store().set(key, seconds * 1_000_000 + microseconds + SLOW.room - tokens * SLOW.step, ex=60)


def calls_until_refused(call) -> tuple[int, int, object]:
    """Call until a 429; return the calls that passed, how many may have passed at one token a second, the 429."""
    started = time.monotonic()
    for passed in range(1000):
        response = call()
        if response.status_code == 429:
            return passed, int(time.monotonic() - started), response
    raise AssertionError("never refused")


def some_client() -> str:
    """An address that no other test calls from."""
    return f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1"


def limits(response) -> tuple[int, int, int]:
    return tuple(int(response[f"RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset"))


@pytest.mark.django_db
class TestOfAWorkspace:
    def test_a_burst_of_100_passes_and_the_next_call_is_429(self, api: Api, settings):
        settings.RATE_LIMIT = (1, 100)
        passed, grown, refused = calls_until_refused(lambda: api.get("/me"))
        assert 100 <= passed <= 100 + grown
        assert refused.json()["code"] == "rate_limit_exceeded"
        assert refused["Content-Type"] == "application/problem+json"
        assert (refused["Retry-After"], refused["RateLimit-Remaining"]) == ("1", "0")

    def test_the_headers_count_down(self, api: Api, limited):
        assert limits(api.get("/me")) == (3, 2, 1)
        assert limits(api.get("/me")) == (3, 1, 2)

    def test_an_empty_bucket_tells_when_to_come_back(self, api: Api, alice, limited):
        empty(key_of(alice))
        refused = api.get("/me")
        assert (refused.status_code, refused["Retry-After"], limits(refused)) == (429, "1", (3, 0, 3))

    def test_tokens_grow_again(self, api: Api, alice, limited):
        empty(key_of(alice))
        assert api.get("/me").status_code == 429
        let_grow(key_of(alice), tokens=2)
        assert limits(api.get("/me"))[1] == 1
        assert api.get("/me").status_code == 200

    def test_a_full_bucket_leaves_nothing_behind(self, api: Api, alice, limited):
        api.get("/me")
        assert 0 < store().pttl(key_of(alice)) <= 1000

    def test_a_refused_call_takes_nothing(self, api: Api, alice, limited):
        empty(key_of(alice))
        before = store().get(key_of(alice))
        assert api.get("/me").status_code == 429
        assert store().get(key_of(alice)) == before

    def test_two_workspaces_do_not_share(self, api: Api, bobs_api: Api, alice, limited):
        empty(key_of(alice))
        assert api.get("/me").status_code == 429
        assert limits(bobs_api.get("/me")) == (3, 2, 1)

    def test_the_keys_of_one_workspace_share(self, api: Api, alice, limited):
        empty(key_of(alice))
        assert Api(make_key(alice.workspace, "read_only")).get("/me").status_code == 429

    def test_every_answer_to_a_key_has_the_headers(self, api: Api, alice, settings, monkeypatch):
        settings.RATE_LIMIT = (1, 100)
        answers = [
            api.get("/domains"),
            api.get("/domains/dom_x"),
            api.post("/domains", {}),
            api.raw("POST", "/domains", b"{"),
            api.raw("PUT", "/domains", b"{}"),
            Api(make_key(alice.workspace, "read_only")).post("/domains", {}),
        ]
        monkeypatch.setattr(DomainViewSet, "valid", lambda *_: 1 / 0)
        answers.append(api.post("/domains", {"name": "a.example"}))
        assert [answer.status_code for answer in answers] == [200, 404, 422, 400, 405, 403, 500]
        assert all(limits(answer)[0] == 100 for answer in answers)

    def test_an_answer_to_nobody_has_none(self, api: Api, limited):
        answers = [
            Api().get("/me"),
            Api("nonsense").get("/me"),
            api.get("/nothing"),
            api.raw("POST", "/domains", b"{}", "text/plain"),
        ]
        assert [answer.status_code for answer in answers] == [401, 401, 404, 415]
        assert not any(name.startswith("RateLimit") for answer in answers for name in answer.headers)

    def test_the_limit_is_checked_after_the_scope_and_before_the_body(self, api: Api, alice, limited):
        empty(key_of(alice))
        assert Api(make_key(alice.workspace, "read_only")).post("/domains", {}).status_code == 403
        assert api.raw("POST", "/domains", b"{").status_code == 429
        assert api.raw("POST", "/domains", b"{", "text/plain").status_code == 415

    def test_off_is_off(self, api: Api, settings, monkeypatch):
        monkeypatch.setattr(token_bucket, "ask_redis", lambda *_: pytest.fail("Redis was asked"))
        answers = [api.get("/me") for _ in range(5)] + [Api("nonsense").get("/me") for _ in range(25)]
        assert {answer.status_code for answer in answers} == {200, 401}
        assert not any(name.startswith("RateLimit") for answer in answers for name in answer.headers)


@pytest.mark.django_db
class TestWithoutRedis:
    def test_a_redis_that_hangs_costs_a_moment_and_the_memory_limits(self, api: Api, own_redis, limited):
        assert limits(api.get("/me")) == (3, 2, 1)
        own_redis.process.send_signal(signal.SIGSTOP)
        started = time.monotonic()
        passed, grown, refused = calls_until_refused(lambda: api.get("/me"))
        # One attempt of 0.1 s a second; the client's own patience would make it 3 s a call.
        assert time.monotonic() - started < 2
        assert 3 <= passed <= 3 + grown
        assert limits(refused)[:2] == (3, 0)

    def test_a_redis_that_is_gone_costs_nothing(self, api: Api, own_redis, limited):
        assert api.get("/me").status_code == 200
        own_redis.stop()
        started = time.monotonic()
        passed, grown, _ = calls_until_refused(lambda: api.get("/me"))
        assert time.monotonic() - started < 2
        assert 3 <= passed <= 3 + grown

    def test_redis_is_left_alone_for_a_second_and_then_asked_again(self, api: Api, alice, own_redis, limited):
        own_redis.process.send_signal(signal.SIGSTOP)
        api.get("/me")
        own_redis.process.send_signal(signal.SIGCONT)
        rest = redis_client._rest_until[own_redis.url] - time.monotonic()
        assert 0 < rest <= 1
        redis_client._rest_until[own_redis.url] -= 1
        api.get("/me")
        assert store().exists(key_of(alice))

    def test_an_error_of_redis_is_not_an_error_of_the_call(self, api: Api, alice, limited):
        store().rpush(key_of(alice), "no number")
        assert limits(api.get("/me")) == (3, 2, 1)
        store().delete(key_of(alice))

    def test_failures_are_limited_from_memory_too(self, own_redis, limited):
        own_redis.stop()
        client, address = Api().client, some_client()
        passed, grown, _ = calls_until_refused(lambda: client.get("/v1/me", REMOTE_ADDR=address))
        assert 20 <= passed <= 20 + grown


@pytest.mark.django_db
class TestFailedAuthentication:
    def test_after_20_failures_further_ones_are_429(self, limited):
        client, address = Api().client, some_client()
        fail = lambda: client.get("/v1/me", headers={"authorization": "Bearer x"}, REMOTE_ADDR=address)  # noqa: E731
        passed, grown, refused = calls_until_refused(fail)
        assert 20 <= passed <= 20 + grown
        assert (refused.json()["code"], refused["Retry-After"]) == ("rate_limit_exceeded", "1")
        assert "RateLimit-Limit" not in refused

    def test_a_good_key_passes_from_an_address_that_failed(self, api: Api, limited):
        address = some_client()
        calls_until_refused(lambda: api.client.get("/v1/me", REMOTE_ADDR=address))
        assert api.client.get("/v1/me", headers=api.headers, REMOTE_ADDR=address).status_code == 200

    def test_a_good_key_uses_up_no_failure(self, api: Api, settings):
        settings.RATE_LIMIT = (50, 100)
        address = some_client()
        for _ in range(25):
            api.client.get("/v1/me", headers=api.headers, REMOTE_ADDR=address)
        assert api.client.get("/v1/me", REMOTE_ADDR=address).status_code == 401

    def test_every_kind_of_failure_counts(self, alice, limited):
        from workspaces.models import ApiKey
        from workspaces.services import revoke_api_key

        headers = {"authorization": f"Bearer {make_key(alice.workspace)}"}
        revoke_api_key(ApiKey.objects.get())
        client, address = Api().client, some_client()
        calls_until_refused(lambda: client.get("/v1/me", headers=headers, REMOTE_ADDR=address))
        assert client.get("/v1/me", REMOTE_ADDR=address).status_code == 429

    def test_one_subscriber_of_ipv6_is_one_client(self, limited):
        client, address = Api().client, some_client()
        calls_until_refused(lambda: client.get("/v1/me", REMOTE_ADDR=address))
        assert client.get("/v1/me", REMOTE_ADDR=address.replace("::1", ":a:b:c:d")).status_code == 429
        assert client.get("/v1/me", REMOTE_ADDR=some_client()).status_code == 401

    def test_a_forged_header_is_no_way_out(self, limited):
        client, address = Api().client, some_client()
        passed, grown, _ = calls_until_refused(
            lambda: client.get("/v1/me", REMOTE_ADDR=address, headers={"x-forwarded-for": some_client()})
        )
        assert passed <= 20 + grown

    def test_clients_behind_a_trusted_proxy_are_told_apart(self, limited, settings, monkeypatch):
        monkeypatch.setenv("TRUSTED_PROXIES", "10.0.0.0/8")
        settings.TRUSTED_PROXIES = env.networks("TRUSTED_PROXIES")
        client = Api().client

        def call(address: str):
            forwarded = {"x-forwarded-for": f"{some_client()}, {address}, 10.0.0.2"}
            return client.get("/v1/me", REMOTE_ADDR="10.0.0.1", headers=forwarded)

        address = some_client()
        calls_until_refused(lambda: call(address))
        assert call(some_client()).status_code == 401


class TestBuckets:
    def test_many_at_once_take_no_more_than_there_is(self):
        key = secrets.token_hex(8)
        started = time.monotonic()
        with ThreadPoolExecutor(20) as pool:
            levels = list(pool.map(lambda _: take_token(key, limit=Limit(1, 10)), range(60)))
        assert 10 <= sum(level.is_allowed for level in levels) <= 10 + int(time.monotonic() - started)

    def test_a_redis_that_forgot_the_script_is_told_it_again(self):
        key = secrets.token_hex(8)
        take_token(key, limit=SLOW)
        store().script_flush()
        assert take_token(key, limit=SLOW).remaining == 1
        assert store().exists(f"{KEY_PREFIX}{key}")

    def test_a_clock_that_was_set_back_closes_a_bucket_for_no_longer_than_it_takes_to_fill(self):
        key = secrets.token_hex(8)
        empty(f"{KEY_PREFIX}{key}")
        level = take_token(key, limit=SLOW)
        assert (level.is_allowed, level.full_in, level.retry_after_seconds) == (False, SLOW.room, 1)

    @pytest.mark.parametrize("limit", [Limit(1, 1), Limit(3, 7), Limit(50, 100), Limit(999_999, 999_999)])
    def test_redis_and_memory_count_alike(self, limit):
        key = secrets.token_hex(8)
        assert take_token(key, limit=limit) == MemoryBuckets().take(key, limit=limit)

    def test_memory_holds_so_many_buckets_and_drops_the_longest_unused(self):
        memory = MemoryBuckets(size=3)
        for key in ("a", "b", "c", "a", "d"):
            memory.take(key, limit=SLOW)
        assert list(memory._full_at) == ["c", "a", "d"]
        assert memory.take("a", limit=SLOW).remaining == 0
        assert memory.take("b", limit=SLOW).remaining == 2

    def test_memory_grows_tokens_again(self):
        memory = MemoryBuckets()
        while memory.take("a", limit=SLOW).is_allowed:
            pass
        memory._full_at["a"] -= SLOW.step
        assert memory.take("a", limit=SLOW).is_allowed
        assert not memory.take("a", limit=SLOW).is_allowed


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("", (50, 100)),
        ("10/s burst 20", (10, 20)),
        ("1/S  BURST  1", (1, 1)),
        ("off", None),
        ("OFF", None),
    ],
)
def test_a_rate_is_read(monkeypatch, text, rate):
    monkeypatch.setattr(env, "problems", [])
    monkeypatch.setenv("RATE_LIMIT", text)
    assert env.rate("RATE_LIMIT", (50, 100)) == rate
    assert env.problems == []


@pytest.mark.parametrize("text", ["50", "50/s", "0/s burst 1", "1/s burst 0", "50/m burst 9", "-1/s burst 1", "none"])
def test_a_rate_that_makes_no_sense_is_a_sentence(monkeypatch, text):
    monkeypatch.setattr(env, "problems", [])
    monkeypatch.setenv("RATE_LIMIT", text)
    assert env.rate("RATE_LIMIT", (50, 100)) == (50, 100)
    assert env.problems == [f"RATE_LIMIT must be off, or such as 50/s burst 100, not {text!r}."]
