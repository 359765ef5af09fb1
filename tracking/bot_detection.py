"""Which hits are probably no person's: a table of what scanners, preview bots and prefetchers say of themselves.

Information only: a marked hit counts as any other. What tells nothing of itself (Safe Links and many gateways come as
ordinary browsers) is found by its haste alone (emails.events.opens_and_clicks). See docs/decisions/0027.
"""

from collections.abc import Mapping
from typing import Any

# Browsers and proxies that fetch what nobody has asked for yet: the Sec-Purpose header of the Fetch standard,
# its predecessors Purpose (Chrome, Safari), X-Purpose (Safari's previews) and X-Moz (Firefox).
PURPOSE_HEADERS = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
PURPOSES = ("prefetch", "prerender", "preview")

# Part of a User-Agent in lower case, and who sends it.
# Not here: GoogleImageProxy and YahooMailProxy, which fetch when a person looks. To mark them lost whole
# audiences their opens elsewhere (mautic/mautic#16069).
AGENTS = {
    # Gmail's look at new mail, under the name of a browser that never was (mautic/mautic#10245, ankane/ahoy_email#139).
    "edge/12.246 mozilla/5.0": "Gmail's sampling",
    "gmail-content-sampling": "Gmail's sampling (mssola/user_agent#71)",
    # Gateways that follow links before they let a mail in, those that give their name (named in the guides of
    # suped.com and live-direct-marketing.online to clicks of scanners).
    "barracuda": "Barracuda",
    "ciscosecureemail": "Cisco",
    "fortimail": "Fortinet",
    "mimecast": "Mimecast",
    "proofpoint": "Proofpoint",
    "sophos": "Sophos",
    "trendmicro": "Trend Micro",
    # Who shows a card for a link that somebody pasted into a chat.
    "bingpreview": "Microsoft",
    "skypeuripreview": "Microsoft",
    "facebookexternal": "Meta",
    "whatsapp/": "Meta",
    "snap url preview": "Snap",
    # Crawlers name themselves so, by convention; libraries by their defaults.
    "bot/": "a crawler",
    "bot;": "a crawler",
    "bot-": "a crawler, such as Slackbot-LinkExpanding",
    "crawler": "a crawler",
    "spider": "a crawler",
    "headlesschrome": "a script",
    "aiohttp": "a script",
    "apache-httpclient": "a script",
    "curl/": "a script",
    "go-http-client": "a script",
    "java/": "a script",
    "libwww-perl": "a script",
    "python-": "a script",
    "wget/": "a script",
}
# Apple's Mail Privacy Protection loads every picture of every mail, read or not, and says this alone; an empty
# name is nobody's browser.
WHOLE_AGENTS = frozenset({"", "mozilla/5.0"})


def is_machine(meta: Mapping[str, Any]) -> bool:
    """Tell whether a request looks like a machine's. meta: its META."""
    purposes = " ".join(str(meta.get(header, "")) for header in PURPOSE_HEADERS).lower()
    if any(purpose in purposes for purpose in PURPOSES):
        return True
    agent = str(meta.get("HTTP_USER_AGENT", "")).strip().lower()
    return agent in WHOLE_AGENTS or any(part in agent for part in AGENTS)
