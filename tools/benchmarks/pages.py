"""Benchmark of the weight of pages in Chromium: bytes over the network, at the first and at later visits.

    .venv/bin/python -m tools.benchmarks.pages

Requires chromium, and DATABASE_URL of a server on which databases may be created.
"""

import json
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.collected import collected_files
from tests.console.dashboard.page_weight import FIRST_VISIT, REPEAT_VISIT, weigh
from tests.stack.stack import running_stack
from tools.benchmarks.figures import record_figure
from tools.benchmarks.fixtures import create_fixtures
from tools.benchmarks.sizes import size

PAGES = {
    "overview": "/dashboard/",
    "emails": "/dashboard/emails/",
    "email": "/dashboard/emails/{email}/",
    "inbox": "/dashboard/inbox/",
    "template": "/dashboard/templates/{template}/",
    "domain": "/dashboard/domains/{domain}/",
    "webhook": "/dashboard/webhooks/{webhook}/",
    "suppressions": "/dashboard/suppressions/",
    "bounces": "/dashboard/bounces/",
    "usage": "/dashboard/usage/",
    "documentation": "/docs/",
    "documentation, quick start": "/docs/quickstart/python",
    "documentation, guide": "/docs/guides/templates",
    "documentation, API reference": "/docs/api/emails",
    "documentation, errors": "/docs/errors",
    "documentation, search": "/docs/search?q=bounce",
}
EMAILS = size(60, smoke=5)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, running_stack(Path(folder)) as stack, sync_playwright() as playwright:
        stack.environment["STATIC_ROOT"] = str(collected_files())
        demo = json.loads(stack.manage("create_demo"))
        stack.start("web")
        stack.key = demo["apiKey"]
        for number in range(EMAILS):
            stack.send(subject=f"Your receipt for the order {number}")
        objects = create_fixtures(stack)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        page = browser.new_page()
        page.goto(f"{stack.url}/dashboard/login/")
        page.fill("[name=username]", demo["dashboardEmail"])
        page.fill("[name=password]", demo["dashboardPassword"])
        page.press("[name=password]", "Enter")
        page.wait_for_url("**/dashboard/")
        for name, path in PAGES.items():
            weight = weigh(page, stack.url + path.format(**objects))
            record_figure(f"{name}, first visit", weight.first / 1000, "kB", at_most=FIRST_VISIT / 1000)
            record_figure(f"{name}, repeat visit", weight.repeat / 1000, "kB", at_most=REPEAT_VISIT / 1000)
        browser.close()


if __name__ == "__main__":
    main()
