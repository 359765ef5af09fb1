"""Bytes that a page takes over the network, measured by Chromium."""

from dataclasses import dataclass, field
from typing import Any

from playwright.sync_api import Page

# Bytes of the headers and compressed bodies of all responses of a page.
FIRST_VISIT, REPEAT_VISIT = 350_000, 40_000
# Fonts and the requests of scripts start after the load event.
SETTLED = "async () => { await document.fonts.ready; await new Promise(requestIdleCallback); }"


@dataclass(frozen=True)
class PageWeight:
    first: int
    repeat: int


def weigh(page: Page, url: str) -> PageWeight:
    """Load a page with an empty cache, then again with a filled one."""
    session = page.context.new_cdp_session(page)
    traffic = _Traffic()
    session.on("Network.requestWillBeSent", traffic.begin)
    session.on("Network.loadingFinished", traffic.finish)
    session.on("Network.loadingFailed", lambda event: traffic.open.discard(event["requestId"]))
    session.send("Network.enable")
    session.send("Network.clearBrowserCache")
    weight = PageWeight(_load(page, url, traffic), _load(page, url, traffic))
    session.detach()
    return weight


@dataclass
class _Traffic:
    """The requests of a page that are not answered yet, and the bytes of the others."""

    open: set[str] = field(default_factory=set)
    received: int = 0

    def begin(self, event: dict[str, Any]) -> None:
        # `goto` waits for the document; that of a sandboxed frame is answered in another process.
        if event["type"] != "Document":
            self.open.add(event["requestId"])

    def finish(self, event: dict[str, Any]) -> None:
        self.open.discard(event["requestId"])
        self.received += int(event["encodedDataLength"])


def _load(page: Page, url: str, traffic: _Traffic) -> int:
    page.goto("about:blank")
    traffic.open.clear()
    traffic.received = 0
    page.goto(url)
    page.evaluate(SETTLED)
    while traffic.open:
        page.wait_for_timeout(10)
    return traffic.received
