"""An identity provider that hangs delays its own sign-ins only."""

import threading
import time
import urllib.error
import urllib.request

import pytest

from tests.dashboard.auth.oidc.forging_provider import forging_provider
from tests.stack.stack import running_stack


def get(url: str, *, client: str) -> tuple[int, float]:
    """Return the status and the seconds of a request of a client behind the proxy."""
    request = urllib.request.Request(url, headers={"X-Forwarded-For": client})
    started = time.monotonic()
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            status = response.status
    except urllib.error.HTTPError as error:
        status = error.code
    return status, time.monotonic() - started


@pytest.mark.alone
def test_other_pages_answer_while_the_provider_hangs(tmp_path):
    end = threading.Event()
    with forging_provider() as provider:
        provider.responses["/.well-known/openid-configuration"] = lambda: (end.wait(60), {})
        variables = {
            "OIDC_ISSUER": provider.issuer,
            "OIDC_CLIENT_ID": "postrider",
            "OIDC_CLIENT_SECRET": "a secret",
            "OIDC_ALLOW_PRIVATE_NETWORKS": "true",
            "TRUSTED_PROXIES": "127.0.0.1",
            "WEB_CONCURRENCY": "1",
        }
        with running_stack(tmp_path, **variables) as stack:
            stack.start("web")
            sign_ins: list[tuple[int, float]] = []
            threads = [
                threading.Thread(
                    target=lambda number=number: sign_ins.append(
                        get(f"{stack.url}/dashboard/oidc/", client=f"203.0.113.{number}")
                    )
                )
                for number in range(1, 13)
            ]
            for thread in threads:
                thread.start()
            time.sleep(1)
            others = [get(f"{stack.url}/dashboard/login/", client="198.51.100.7") for _ in range(10)]
            for thread in threads:
                thread.join()
            end.set()
    assert {status for status, _ in others} == {200}
    assert max(seconds for _, seconds in others) < 2.5
    assert {status for status, _ in sign_ins} == {503}
    assert max(seconds for _, seconds in sign_ins) < 20
