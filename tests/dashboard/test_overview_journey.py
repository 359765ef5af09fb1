"""Charts, filters and health of the overview in Chromium."""

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from counters import counters
from counters.slices import Dimension, slice_id
from events.models import Event
from tests.conftest import make_account
from tests.dashboard.axe import violations
from tests.dashboard.browser import sign_in
from tests.dashboard.conftest import make_email
from tests.dashboard.scenario import fill_workspace
from workspaces.models import Workspace

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]

# Moves the mouse over each position of the last chart, and returns those without a tooltip.
SILENT_POSITIONS = """async () => {
  const canvas = [...document.querySelectorAll("canvas[data-chart]")].at(-1);
  const chart = Chart.getChart(canvas);
  const { left, right, top, bottom } = chart.chartArea;
  const box = canvas.getBoundingClientRect();
  const silent = [];
  for (let x = left + 1; x < right; x += 4) {
    const place = { clientX: box.left + x, clientY: box.top + (top + bottom) / 2, bubbles: true };
    canvas.dispatchEvent(new MouseEvent("mousemove", place));
    await new Promise(requestAnimationFrame);
    if (!chart.tooltip.opacity) silent.push(x);
  }
  return silent;
}"""
COLORS = """() => [...document.querySelectorAll("canvas[data-chart]")].flatMap((canvas) =>
  Chart.getChart(canvas).data.datasets.filter((one) => one.label).flatMap((one) => one.hoverBackgroundColor))"""


@pytest.fixture
def account(settings):
    settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
    account = make_account("alice", plan="pro")
    fill_workspace(account)
    Workspace.objects.update(created_at=datetime.now(UTC) - timedelta(days=60))
    return account


def test_charts_answer_everywhere_in_the_colours_of_the_page(visit, account):
    sign_in(visit, account.owner.email)
    page = visit.go("/dashboard/?days=30")
    page.wait_for_function("Chart.getChart(document.querySelector('canvas[data-chart]')) !== undefined")

    assert page.evaluate(SILENT_POSITIONS) == []
    colors = page.evaluate(COLORS)
    assert colors
    assert not [color for color in colors if color.startswith("rgba(0, 0, 0") or "var(" in color]
    assert not visit.complaints


def test_an_owner_looks_at_the_emails_of_a_tag(visit, account):
    shop = slice_id(account.workspace.id, Dimension.TAG, "shop")
    key = counters.CounterKey(account.workspace.id, datetime.now(UTC), "status.delivered", (shop,))
    counters.add([(key, 42)])
    sign_in(visit, account.owner.email)

    page = visit.go("/dashboard/")
    page.get_by_text("Filter", exact=True).click()
    page.locator("select[name=show]").select_option(label="shop")
    page.get_by_role("button", name="Show", exact=True).click()
    expect(page.locator(".pr-metric").first).to_have_text("42")
    page.get_by_role("link", name="90 days").click()
    # The selection stays when the period changes.
    expect(page.locator(".pr-metric").first).to_have_text("42")
    page.get_by_text("Show as table").click()
    expect(page.locator(".pr-fold tbody tr").first).to_contain_text("so far")
    expect(page.locator(".pr-fold tbody tr").last).to_contain_text("no data")
    page.get_by_role("link", name="Clear").click()
    expect(page.locator(".pr-metric").first).not_to_have_text("42")
    assert not visit.complaints


def test_the_other_pages_of_a_workspace_with_emails_look_right(look, account):
    sign_in(look, account.owner.email)
    email = make_email(account.workspace, to=["ada@example.com", "a-long-name-of-a-recipient@department.example.com"])
    for seconds, to in ((2, "ada@example.com"), (70, email.to[1]), (9_000, "ada@example.com")):
        at = email.created_at + timedelta(seconds=seconds)
        Event.objects.create(email=email, kind="opened", payload={"to": to}, created_at=at)
    problems = []
    for name, path in (("timeline", f"emails/{email.id}/"), ("keys", "keys/"), ("not-found", "nowhere/")):
        page = look.go(f"/dashboard/{path}")
        look.keep_screenshot(f"{name}-{look.name}")
        problems += [f"{name}: wider than the window"] if look.is_wider_than_window() else []
        problems += [f"{name}: {violation}" for violation in violations(page)]
    expect(page.get_by_role("heading", name="This page does not exist in this workspace")).to_be_visible()
    expect(page.get_by_role("link", name="Go to the overview")).to_be_visible()

    # The browser logs the response 404.
    problems += [complaint for complaint in look.complaints if "404" not in complaint]
    assert not problems, "\n".join(problems)


def test_the_overview_looks_right(look, account):
    sign_in(look, account.owner.email)
    problems = []
    for name, query in (("overview", ""), ("range", "?show=tag:shop&days=90")):
        page = look.go(f"/dashboard/{query}")
        page.wait_for_function("Chart.getChart(document.querySelector('canvas[data-chart]')) !== undefined")
        if query:
            page.get_by_text("Show as table").click()
        look.keep_screenshot(f"{name}-{look.name}")
        problems += [f"{name}: wider than the window"] if look.is_wider_than_window() else []
        problems += [f"{name}: {violation}" for violation in violations(page)]
    look.go("/dashboard/usage/").wait_for_function(
        "Chart.getChart(document.querySelector('canvas[data-chart]')) !== undefined"
    )
    look.keep_screenshot(f"usage-{look.name}")
    problems += [f"usage: {violation}" for violation in violations(look.page)]

    problems += look.complaints
    assert not problems, "\n".join(problems)
