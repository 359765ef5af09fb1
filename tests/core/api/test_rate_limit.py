"""Rate limits of workspaces, and of failed authentications per address."""

import secrets
import signal
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import redis
from django.conf import settings as django_settings

from config import env
from core.lib import redis_client, token_bucket
from core.lib.token_bucket import KEY_PREFIX, MemoryBuckets, RateLimit, owe_tokens, take_token
from core.workspaces.api import throttling
from domains.views import DomainViewSet
from tests.conftest import Api, make_key
from tests.rows import each
from tools.embedded.servers.redis import start_throw_away

SLOW = RateLimit(per_second=1, burst=3)


@pytest.fixture(autouse=True)
def _reset_limits(request, monkeypatch):
    token_bucket.memory_buckets.clear()
    redis_client._paused_until.clear()
    if request.cls is not TestOwedTokens:
        # The first request of a process may compute for long enough to owe tokens.
        monkeypatch.setattr(throttling, "STEP_SECONDS", 60)


@pytest.fixture
def limited(settings):
    """A rate limit whose tokens refill too slowly to matter within a test."""
    settings.RATE_LIMIT = (1, 3)


@pytest.fixture
def own_redis(settings, monkeypatch, redis_timeout):
    """A Redis that may stop, with the timeout of the service."""
    monkeypatch.setattr(redis_client, "TIMEOUT_SECONDS", redis_timeout)
    server = start_throw_away()
    settings.REDIS_URL = server.url
    yield server
    if server.is_alive:
        server.process.send_signal(signal.SIGCONT)
    server.stop()


def bucket_key(account) -> str:
    return f"{KEY_PREFIX}workspace:{account.workspace.id}"


def redis_store() -> redis.Redis:
    return redis.Redis.from_url(django_settings.REDIS_URL)


def empty(key: str) -> None:
    """Empty a bucket: one that is full in the far future counts as empty."""
    redis_store().set(key, 10**16, ex=60)


def refill(key: str, *, tokens: int) -> None:
    """Set a bucket to its state some time after it was empty."""
    seconds, microseconds = redis_store().time()
    redis_store().set(
        key, seconds * 1_000_000 + microseconds + SLOW.capacity_microseconds - tokens * SLOW.step_microseconds, ex=60
    )


def calls_until_refused(call) -> tuple[int, int, object]:
    """Call until a 429; return the number of allowed calls, the tokens refilled at one per second, and the 429."""
    started = time.monotonic()
    for passed in range(1000):
        response = call()
        if response.status_code == 429:
            return passed, int(time.monotonic() - started), response
    raise AssertionError("never refused")


def some_client() -> str:
    """Return an address that no other test uses."""
    return f"2001:db8:{secrets.token_hex(2)}:{secrets.token_hex(2)}::1"


def limits(response) -> tuple[int, int, int]:
    return tuple(int(response[f"RateLimit-{name}"]) for name in ("Limit", "Remaining", "Reset"))


@pytest.mark.django_db
class TestWorkspaceLimit:
    def test_a_burst_of_100_is_allowed_and_the_next_call_is_429(self, api: Api, settings):
        settings.RATE_LIMIT = (1, 100)
        passed, grown, refused = calls_until_refused(lambda: api.get("/me"))
        assert 100 <= passed <= 100 + grown
        assert refused.json()["code"] == "rate_limit_exceeded"
        assert refused["Content-Type"] == "application/problem+json"
        assert (refused["Retry-After"], refused["RateLimit-Remaining"]) == ("1", "0")

    def test_the_headers_count_down(self, api: Api, limited):
        assert limits(api.get("/me")) == (3, 2, 1)
        assert limits(api.get("/me")) == (3, 1, 2)

    def test_an_empty_bucket_returns_retry_after(self, api: Api, alice, limited):
        empty(bucket_key(alice))
        refused = api.get("/me")
        assert (refused.status_code, refused["Retry-After"], limits(refused)) == (429, "4", (3, 0, 6))

    def test_tokens_refill(self, api: Api, alice, limited):
        empty(bucket_key(alice))
        assert api.get("/me").status_code == 429
        refill(bucket_key(alice), tokens=2)
        assert limits(api.get("/me"))[1] == 1
        assert api.get("/me").status_code == 200

    def test_the_key_of_a_full_bucket_expires(self, api: Api, alice, limited):
        api.get("/me")
        assert 0 < redis_store().pttl(bucket_key(alice)) <= 1000

    def test_a_refused_call_takes_no_token(self, api: Api, alice, limited):
        empty(bucket_key(alice))
        before = redis_store().get(bucket_key(alice))
        assert api.get("/me").status_code == 429
        assert redis_store().get(bucket_key(alice)) == before

    def test_two_workspaces_have_separate_buckets(self, api: Api, bobs_api: Api, alice, limited):
        empty(bucket_key(alice))
        assert api.get("/me").status_code == 429
        assert limits(bobs_api.get("/me")) == (3, 2, 1)

    def test_the_keys_of_a_workspace_share_a_bucket(self, api: Api, alice, limited):
        empty(bucket_key(alice))
        assert Api(make_key(alice.workspace, "read_only")).get("/me").status_code == 429

    def test_every_authenticated_response_has_the_headers(self, api: Api, alice, settings, monkeypatch):
        settings.RATE_LIMIT = (1, 100)
        responses = [
            api.get("/domains"),
            api.get("/domains/dom_x"),
            api.post("/domains", {}),
            api.raw("POST", "/domains", b"{"),
            api.raw("PUT", "/domains", b"{}"),
            Api(make_key(alice.workspace, "read_only")).post("/domains", {}),
        ]
        monkeypatch.setattr(DomainViewSet, "valid", lambda *_: 1 / 0)
        responses.append(api.post("/domains", {"name": "a.example"}))
        assert [response.status_code for response in responses] == [200, 404, 422, 400, 405, 403, 500]
        assert all(limits(response)[0] == 100 for response in responses)

    def test_an_unauthenticated_response_has_none(self, api: Api, limited):
        responses = [
            Api().get("/me"),
            Api("nonsense").get("/me"),
            api.get("/nothing"),
            api.raw("POST", "/domains", b"{}", "text/plain"),
        ]
        assert [response.status_code for response in responses] == [401, 401, 404, 415]
        assert not any(name.startswith("RateLimit") for response in responses for name in response.headers)

    def test_the_limit_is_checked_after_the_scope_and_before_the_body(self, api: Api, alice, limited):
        empty(bucket_key(alice))
        assert Api(make_key(alice.workspace, "read_only")).post("/domains", {}).status_code == 403
        assert api.raw("POST", "/domains", b"{").status_code == 429
        assert api.raw("POST", "/domains", b"{", "text/plain").status_code == 415

    def test_off_disables_all_limits(self, api: Api, settings, monkeypatch):
        monkeypatch.setattr(token_bucket, "ask_redis", lambda *_: pytest.fail("Redis was called"))
        responses = [api.get("/me") for _ in range(5)] + [Api("nonsense").get("/me") for _ in range(25)]
        assert {response.status_code for response in responses} == {200, 401}
        assert not any(name.startswith("RateLimit") for response in responses for name in response.headers)


@pytest.mark.django_db
class TestWithoutRedis:
    @pytest.mark.parametrize("fault", ["hanging", "stopped"])
    def test_a_fault_of_redis_costs_little_and_memory_limits(self, api: Api, own_redis, limited, fault):
        assert limits(api.get("/me")) == (3, 2, 1)
        if fault == "hanging":
            own_redis.process.send_signal(signal.SIGSTOP)
        else:
            own_redis.stop()
        started = time.monotonic()
        passed, grown, refused = calls_until_refused(lambda: api.get("/me"))
        # One attempt of 0.1 s per second; the client's default retries would take 3 s per call.
        assert time.monotonic() - started < 2
        assert 3 <= passed <= 3 + grown
        assert limits(refused)[:2] == (3, 0)

    def test_redis_is_skipped_for_a_second_and_then_used_again(self, api: Api, alice, own_redis, limited):
        own_redis.process.send_signal(signal.SIGSTOP)
        api.get("/me")
        own_redis.process.send_signal(signal.SIGCONT)
        pause = redis_client._paused_until[own_redis.url] - time.monotonic()
        assert 0 < pause <= 1
        redis_client._paused_until[own_redis.url] -= 1
        api.get("/me")
        assert redis_store().exists(bucket_key(alice))

    def test_a_redis_error_does_not_fail_the_call(self, api: Api, alice, limited):
        redis_store().rpush(bucket_key(alice), "no number")
        assert limits(api.get("/me")) == (3, 2, 1)
        redis_store().delete(bucket_key(alice))

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

    def test_a_valid_key_is_allowed_from_a_limited_address(self, api: Api, limited):
        address = some_client()
        calls_until_refused(lambda: api.client.get("/v1/me", REMOTE_ADDR=address))
        assert api.client.get("/v1/me", headers=api.headers, REMOTE_ADDR=address).status_code == 200

    def test_a_valid_key_counts_no_failure(self, api: Api, settings):
        settings.RATE_LIMIT = (50, 100)
        address = some_client()
        for _ in range(25):
            api.client.get("/v1/me", headers=api.headers, REMOTE_ADDR=address)
        assert api.client.get("/v1/me", REMOTE_ADDR=address).status_code == 401

    def test_every_kind_of_failure_counts(self, alice, limited):
        from core.workspaces.models import ApiKey
        from core.workspaces.services import revoke_api_key

        headers = {"authorization": f"Bearer {make_key(alice.workspace)}"}
        revoke_api_key(ApiKey.objects.get())
        client, address = Api().client, some_client()
        calls_until_refused(lambda: client.get("/v1/me", headers=headers, REMOTE_ADDR=address))
        assert client.get("/v1/me", REMOTE_ADDR=address).status_code == 429

    def test_an_ipv6_subscriber_is_one_client(self, limited):
        client, address = Api().client, some_client()
        calls_until_refused(lambda: client.get("/v1/me", REMOTE_ADDR=address))
        assert client.get("/v1/me", REMOTE_ADDR=address.replace("::1", ":a:b:c:d")).status_code == 429
        assert client.get("/v1/me", REMOTE_ADDR=some_client()).status_code == 401

    def test_a_forged_header_does_not_evade_the_limit(self, limited):
        client, address = Api().client, some_client()
        passed, grown, _ = calls_until_refused(
            lambda: client.get("/v1/me", REMOTE_ADDR=address, headers={"x-forwarded-for": some_client()})
        )
        assert passed <= 20 + grown

    def test_clients_behind_a_trusted_proxy_are_limited_separately(self, limited, settings, monkeypatch):
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
    def test_concurrent_calls_take_no_more_tokens_than_available(self):
        key = secrets.token_hex(8)
        started = time.monotonic()
        with ThreadPoolExecutor(20) as pool:
            states = list(pool.map(lambda _: take_token(key, limit=RateLimit(1, 10)), range(60)))
        assert 10 <= sum(state.is_allowed for state in states) <= 10 + int(time.monotonic() - started)

    def test_the_script_is_sent_again_after_a_script_flush(self):
        key = secrets.token_hex(8)
        take_token(key, limit=SLOW)
        redis_store().script_flush()
        assert take_token(key, limit=SLOW).remaining == 1
        assert redis_store().exists(f"{KEY_PREFIX}{key}")

    def test_a_clock_set_back_empties_a_bucket_for_no_longer_than_owed_tokens(self):
        key = secrets.token_hex(8)
        empty(f"{KEY_PREFIX}{key}")
        state = take_token(key, limit=SLOW)
        assert (state.is_allowed, state.full_in_microseconds, state.retry_after_seconds) == (
            False,
            2 * SLOW.capacity_microseconds,
            1 + SLOW.burst,
        )

    @each("limit", [RateLimit(1, 1), RateLimit(3, 7), RateLimit(50, 100), RateLimit(999_999, 999_999)])
    def test_redis_and_memory_return_the_same_state(self, limit):
        key = secrets.token_hex(8)
        assert take_token(key, limit=limit) == MemoryBuckets().take(key, limit=limit)

    def test_memory_evicts_the_least_recently_used_bucket(self):
        memory = MemoryBuckets(max_buckets=3)
        for key in ("a", "b", "c", "a", "d"):
            memory.take(key, limit=SLOW)
        assert list(memory._full_at) == ["c", "a", "d"]
        assert memory.take("a", limit=SLOW).remaining == 0
        assert memory.take("b", limit=SLOW).remaining == 2

    def test_memory_refills_tokens(self):
        memory = MemoryBuckets()
        while memory.take("a", limit=SLOW).is_allowed:
            pass
        memory._full_at["a"] -= SLOW.step_microseconds
        assert memory.take("a", limit=SLOW).is_allowed
        assert not memory.take("a", limit=SLOW).is_allowed


@each(
    ("text", "rate"),
    [
        ("", (50, 100)),
        ("10/s burst 20", (10, 20)),
        ("1/S  BURST  1", (1, 1)),
        ("off", None),
        ("OFF", None),
    ],
)
def test_a_rate_is_parsed(monkeypatch, text, rate):
    monkeypatch.setattr(env, "problems", [])
    monkeypatch.setenv("RATE_LIMIT", text)
    assert env.rate("RATE_LIMIT", (50, 100)) == rate
    assert env.problems == []


@each("text", ["50", "50/s", "0/s burst 1", "1/s burst 0", "50/m burst 9", "-1/s burst 1", "none"])
def test_an_invalid_rate_is_reported(monkeypatch, text):
    monkeypatch.setattr(env, "problems", [])
    monkeypatch.setenv("RATE_LIMIT", text)
    assert env.rate("RATE_LIMIT", (50, 100)) == (50, 100)
    assert env.problems == [f"RATE_LIMIT must be off, or a rate such as 50/s burst 100, not {text!r}."]


class TestOwedTokens:
    @pytest.fixture(params=["redis", "memory"])
    def url(self, request, settings):
        if request.param == "memory":
            settings.REDIS_URL = "redis://127.0.0.1:1"

    def test_later_requests_wait_for_them(self, url):
        key = secrets.token_hex(8)
        owe_tokens(key, 2, limit=SLOW)
        assert take_token(key, limit=SLOW).is_allowed
        refused = take_token(key, limit=SLOW)
        assert (refused.is_allowed, refused.remaining, refused.retry_after_seconds) == (False, 0, 1)

    def test_at_most_a_second_burst_is_owed(self, url):
        key = secrets.token_hex(8)
        owe_tokens(key, 1000, limit=SLOW)
        refused = take_token(key, limit=SLOW)
        assert (refused.is_allowed, refused.remaining, refused.retry_after_seconds) == (False, 0, 4)

    def test_a_bucket_says_whether_owed_tokens_have_emptied_it(self, url):
        key = secrets.token_hex(8)
        owe_tokens(key, 2, limit=SLOW)
        assert take_token(key, limit=SLOW).is_allowed
        refused = take_token(key, limit=SLOW)
        assert (refused.is_allowed, refused.is_owing) == (False, True)

    def test_a_bucket_that_requests_have_emptied_owes_nothing(self, url):
        key = secrets.token_hex(8)
        while take_token(key, limit=SLOW).is_allowed:
            pass
        owe_tokens(key, 2, limit=SLOW)
        refused = take_token(key, limit=SLOW)
        assert (refused.is_allowed, refused.is_owing) == (False, False)

    def test_the_refusal_for_processor_time_names_no_number_of_requests(self, api: Api, alice, settings):
        settings.RATE_LIMIT = (1, 10)
        throttling.owe_processor_time(alice.workspace, 0.1)
        refused = api.get("/me")
        assert (refused.status_code, refused.json()["code"]) == (429, "processor_time_exceeded")
        assert "per second" not in refused.json()["detail"]
        assert int(refused["Retry-After"]) >= 1

    def test_a_request_owes_five_tokens_for_each_twentieth_of_a_second(self, api: Api, settings, monkeypatch):
        settings.RATE_LIMIT = (1, 100)
        used = iter([7.0, 7.11])
        monkeypatch.setattr("core.workspaces.api.viewsets.time.thread_time", lambda: next(used))
        assert api.get("/me")["RateLimit-Remaining"] == "99"
        monkeypatch.undo()
        assert api.get("/me")["RateLimit-Remaining"] == "88"

    def test_a_short_request_owes_nothing(self, api: Api, settings, monkeypatch):
        settings.RATE_LIMIT = (1, 100)
        monkeypatch.setattr("core.workspaces.api.viewsets.time.thread_time", iter([7.0, 7.049]).__next__)
        assert api.get("/me")["RateLimit-Remaining"] == "99"
        monkeypatch.undo()
        assert api.get("/me")["RateLimit-Remaining"] == "98"

    def test_a_workspace_computes_for_some_seconds(self, api: Api, alice, settings, monkeypatch):
        settings.RATE_LIMIT = None
        throttling.computing.clear()
        assert not throttling.is_computing(alice.workspace.id)
        monkeypatch.setattr("core.workspaces.api.viewsets.time.thread_time", iter([7.0, 7.06, 8.0, 8.04]).__next__)
        api.get("/me")
        assert throttling.is_computing(alice.workspace.id)
        # A workspace, whichever: the threads of this process switch more often.
        assert throttling.is_computing()
        assert not throttling.is_computing("other")
        monkeypatch.setattr(throttling.computing, "ttl_seconds", 0.0)
        api.get("/me")
        assert not throttling.is_computing(alice.workspace.id)
