"""Charts, filters and health of the overview in Chromium."""

from datetime import UTC, datetime, timedelta

import pytest

from core.workspaces.models import Workspace
from tests.conftest import make_account
from tests.console.dashboard.axe import page_problems
from tests.console.dashboard.browser import sign_in
from tests.console.dashboard.scenario import fill_workspace

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
def account():
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


def test_the_overview_looks_right(look, account):
    sign_in(look, account.owner.email)
    problems = []
    for name, query in (("overview", ""), ("range", "?show=tag:shop&days=90")):
        page = look.go(f"/dashboard/{query}")
        page.wait_for_function("Chart.getChart(document.querySelector('canvas[data-chart]')) !== undefined")
        if query:
            page.get_by_text("Show as table").click()
        problems += page_problems(look, name)
    look.go("/dashboard/usage/").wait_for_function(
        "Chart.getChart(document.querySelector('canvas[data-chart]')) !== undefined"
    )
    problems += page_problems(look, "usage-chart")

    problems += look.complaints
    assert not problems, "\n".join(problems)
