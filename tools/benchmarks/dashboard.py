"""Benchmark of the dashboard pages on a workspace with three million emails.

    .venv/bin/python -m tools.benchmarks.dashboard [emails]

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
from typing import Any

from tests.stack.stack import Stack, running_stack
from tools.benchmarks.figures import record_figure
from tools.benchmarks.fixtures import create_fixtures
from tools.benchmarks.lists import fill
from tools.benchmarks.sizes import size

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
    "emails, tag of half and page 50": "emails/?tag=receipt&p=50",
    "email": "emails/{email}/",
    "email, panel": "emails/{email}/panel/",
    "recipient": "emails/recipient/?address={address}",
    "received emails": "received/",
    "routes": "routes/",
    "streams": "streams/",
    "requests": "requests/",
    "requests, failed": "requests/?result=failed",
    "requests, no match": "requests/?search=nowhere",
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
DISPLAY = {"column": ["sender", "tags", "stream", "template", "opened"], "rows": "50"}
STAFF_PAGES = {
    "staff: start page": "",
    "staff: workspace": "workspaces/workspace/{workspace}/change/",
    "staff: emails of a person": "emails/email/?q=user77@corp.example",
    "staff: email": "emails/email/{email}/change/",
    "staff: queue": "queue/",
    "staff: audit": "workspaces/auditentry/",
}
RUNS, WARM = size((20, 3), smoke=(1, 1))
LIMIT_MILLISECONDS = 300


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else size(3_000_000, smoke=2_000)
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack:
        fill(stack, count)
        stack.start("web", WEB_CONCURRENCY="2")
        measure_pages(stack)


def measure_pages(stack: Stack) -> None:
    demo = json.loads(stack.manage("create_demo"))
    stack.key = demo["apiKey"]
    objects = create_fixtures(stack)
    session = sign_in(stack, email=demo["dashboardEmail"], password=demo["dashboardPassword"])
    for name, path in PAGES.items():
        report(name, measure(session, f"{stack.url}/dashboard/{path.format(**objects)}"))
    post_form(session, f"{stack.url}/dashboard/emails/", "display/", DISPLAY)
    report("emails, 50 rows and all columns", measure(session, f"{stack.url}/dashboard/emails/"))
    staff = sign_in(stack, email=demo["staffEmail"], password=demo["staffPassword"], site="admin")
    # The admin site quotes an id in a path.
    objects = {name: value.replace("_", "_5F") for name, value in objects.items()}
    for name, path in STAFF_PAGES.items():
        report(name, measure(staff, f"{stack.url}/admin/{path.format(**objects)}"))


def sign_in(stack: Stack, *, email: str, password: str, site: str = "dashboard") -> urllib.request.OpenerDirector:
    """Sign in; return a URL session with its cookie."""
    session = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar()))
    page = post_form(session, f"{stack.url}/{site}/login/", "", {"username": email, "password": password})
    assert page.endswith(f"/{site}/"), page
    return session


def post_form(session: urllib.request.OpenerDirector, page: str, action: str, fields: dict[str, Any]) -> str:
    """Send a form of a page; return the address to which it leads. action: relative to the page."""
    with session.open(page) as content:
        (token,) = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', content.read().decode())[:1]
    form = urllib.parse.urlencode({"csrfmiddlewaretoken": token, **fields}, doseq=True)
    with session.open(urllib.request.Request(page + action, form.encode(), {"Referer": page})) as answer:
        return str(answer.url)


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
