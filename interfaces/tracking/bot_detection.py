"""Bot detection: a table of request headers that scanners, preview bots and prefetchers send.

For information only: a marked hit counts like any other. Bots that look like ordinary browsers (Safe Links and many
gateways) are detected only by their speed (emails.feedback.opens_and_clicks). See docs/decisions/0027.
"""

from collections.abc import Mapping
from typing import Any

# Headers of browsers and proxies that prefetch: Sec-Purpose of the Fetch standard, and its predecessors Purpose
# (Chrome, Safari), X-Purpose (Safari's previews) and X-Moz (Firefox).
PURPOSE_HEADERS = ("HTTP_SEC_PURPOSE", "HTTP_PURPOSE", "HTTP_X_PURPOSE", "HTTP_X_MOZ")
PURPOSES = ("prefetch", "prerender", "preview")

# A lower-case part of a User-Agent, and its sender.
# Not listed: GoogleImageProxy and YahooMailProxy, which fetch when a person opens the message. Marking them hid all
# opens of Gmail and Yahoo users in another project (mautic/mautic#16069).
AGENTS = {
    # Gmail's scan of new messages, with a User-Agent that no browser has (mautic/mautic#10245, ankane/ahoy_email#139).
    "edge/12.246 mozilla/5.0": "Gmail's sampling",
    "gmail-content-sampling": "Gmail's sampling (mssola/user_agent#71)",
    # Gateways that follow links before they accept a message, as far as they identify themselves (listed in the guides
    # of suped.com and live-direct-marketing.online to clicks of scanners).
    "barracuda": "Barracuda",
    "ciscosecureemail": "Cisco",
    "fortimail": "Fortinet",
    "mimecast": "Mimecast",
    "proofpoint": "Proofpoint",
    "sophos": "Sophos",
    "trendmicro": "Trend Micro",
    # Link previews in chats and social networks.
    "bingpreview": "Microsoft",
    "skypeuripreview": "Microsoft",
    "facebookexternal": "Meta",
    "whatsapp/": "Meta",
    "snap url preview": "Snap",
    # Crawlers identify themselves by convention, HTTP libraries by default.
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
# Apple's Mail Privacy Protection loads every image of every message, read or not, and sends only "Mozilla/5.0". No
# browser sends an empty User-Agent.
EXACT_AGENTS = frozenset({"", "mozilla/5.0"})


def is_bot(meta: Mapping[str, Any]) -> bool:
    """Return whether a request probably comes from a bot. meta: its META."""
    purposes = " ".join(str(meta.get(header, "")) for header in PURPOSE_HEADERS).lower()
    if any(purpose in purposes for purpose in PURPOSES):
        return True
    agent = str(meta.get("HTTP_USER_AGENT", "")).strip().lower()
    return agent in EXACT_AGENTS or any(part in agent for part in AGENTS)
