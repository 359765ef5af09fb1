"""Benchmark of the dashboard pages on a workspace with three million emails.

    .venv/bin/python -m benchmarks.dashboard [emails]

Requires DATABASE_URL of a server on which databases may be created. Creating the data takes minutes and 4 GB.
"""

import http.cookiejar
import json
import re
import statistics
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

from benchmarks.figures import record_figure
from benchmarks.fixtures import create_fixtures
from benchmarks.lists import fill
from tests.stack.stack import Stack, running_stack

PAGES = {
    "overview": "",
    "overview, 90 days": "?days=90",
    "emails": "emails/",
    "emails, page 200": "emails/?p=200",
    "status failed": "emails/?status=failed",
    "search, 1 match": "emails/?search=%23123456",
    "search, rare term": "emails/?search=user77%40corp",
    "search, common term": "emails/?search=example",
    "search, two letters": "emails/?search=qx",
    "search, no match": "emails/?search=nowhere-at-all",
    "tag, no match": "emails/?tag=none",
    "search and status": "emails/?search=%23123456&status=delivered",
    "email": "emails/{email}/",
    "inbox": "inbox/",
    "templates": "templates/",
    "template": "templates/{template}/",
    "domains": "domains/",
    "domain": "domains/{domain}/",
    "webhooks": "webhooks/",
    "webhook": "webhooks/{webhook}/",
    "webhook, failed deliveries": "webhooks/{webhook}/?status=exhausted",
    "webhook, page 200": "webhooks/{webhook}/?p=200",
    "delivery": "deliveries/{delivery}/",
    "suppressions": "suppressions/",
    "suppressions, search": "suppressions/?search=gone77",
    "suppressions, two letters": "suppressions/?search=qx",
    "API keys": "keys/",
    "members": "members/",
    "audit": "audit/",
    "audit, page 200": "audit/?p=200",
    "bounces": "bounces/",
    "usage": "usage/",
    "security": "security/",
}
RUNS, WARM = 20, 3
LIMIT_MILLISECONDS = 300


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 3_000_000
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        fill(stack, count)
        demo = json.loads(stack.manage("create_demo"))
        stack.start("web", WEB_CONCURRENCY="2")
        stack.key = demo["apiKey"]
        objects = create_fixtures(stack)
        session = sign_in(stack, email=demo["dashboardEmail"], password=demo["dashboardPassword"])
        for name, path in PAGES.items():
            report(name, measure(session, f"{stack.url}/dashboard/{path.format(**objects)}"))


def sign_in(stack: Stack, *, email: str, password: str) -> urllib.request.OpenerDirector:
    """Sign in as the owner; return a URL session with its cookie."""
    session = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    address = f"{stack.url}/dashboard/login/"
    with session.open(address) as page:
        (token,) = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', page.read().decode())[:1]
    form = {"csrfmiddlewaretoken": token, "username": email, "password": password}
    request = urllib.request.Request(address, urllib.parse.urlencode(form).encode(), {"Referer": address})
    with session.open(request) as page:
        assert page.url.endswith("/dashboard/"), page.url
    return session


def measure(session: urllib.request.OpenerDirector, url: str) -> list[float]:
    seconds = []
    for number in range(RUNS + WARM):
        started = time.perf_counter()
        with session.open(url) as page:
            page.read()
        if number >= WARM:
            seconds.append(time.perf_counter() - started)
    return seconds


def report(name: str, seconds: list[float]) -> None:
    p50, slowest = statistics.median(seconds) * 1000, max(seconds) * 1000
    verdict = "" if slowest <= LIMIT_MILLISECONDS else "   over the limit"
    print(f"{name:24} p50 {p50:6.1f} ms   slowest of {RUNS} {slowest:6.1f} ms{verdict}", flush=True)
    record_figure(f"{name}: slowest of {RUNS}", slowest, "ms", at_most=LIMIT_MILLISECONDS)


if __name__ == "__main__":
    main()
