"""Bytes that a page takes over the network, measured by Chromium."""

from dataclasses import dataclass

from playwright.sync_api import Page

# Bytes of the headers and compressed bodies of all responses of a page.
FIRST_VISIT, REPEAT_VISIT = 350_000, 40_000


@dataclass(frozen=True)
class PageWeight:
    first: int
    repeat: int


def weigh(page: Page, url: str) -> PageWeight:
    """Load a page with an empty cache, then again with a filled one."""
    session = page.context.new_cdp_session(page)
    received: list[int] = []
    session.on("Network.loadingFinished", lambda event: received.append(int(event["encodedDataLength"])))
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    first = _load(page, url, received)
    weight = PageWeight(first, _load(page, url, received))
    session.detach()
    return weight


def _load(page: Page, url: str, received: list[int]) -> int:
    page.goto("about:blank")
    received.clear()
    page.goto(url, wait_until="networkidle")
    return sum(received)
