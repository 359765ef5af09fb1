"""URLs to untrusted hosts: a URL is parsed once, and only its normalized spelling is called.

See core.lib.network.guarded_http and docs/decisions/0033.
"""

import functools
import re
from dataclasses import dataclass
from ipaddress import IPv6Address

from yarl import URL

from core.lib.coded_texts import CodedText
from core.lib.network.address_guard import Address, Guard, TargetRefused

MAX_URL_LENGTH = 2048
# A check compares an address with forty networks, and an endpoint is called many times.
MAX_CACHED_CHECKS = 10_000
DEFAULT_PORTS = {"https": 443, "http": 80}

# Only the host may contain non-ASCII characters; it is converted to A-labels before any other parser reads it.
_URL = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?P<authority>[^/?#\\]*)(?P<rest>[/?][!-~]*)?")
_AUTHORITY = re.compile(r"(?P<host>\[[^\[\]]*\]|[^:\[\]]+)(?::(?P<port>[0-9]{1,5}))?")


class UrlRefused(TargetRefused):
    """Raised when the URL itself is not allowed; the text explains why and reveals nothing beyond the URL."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


@dataclass(frozen=True, kw_only=True)
class UrlRules:
    """The URLs that may be called. A guard that allows private networks also allows http and any port."""

    guard: Guard
    ports: tuple[int, ...] = (443,)


@dataclass(frozen=True)
class Target:
    """A URL whose text is allowed; the addresses of a host name are not checked yet."""

    url: URL
    host: Address | str


@functools.lru_cache(maxsize=MAX_CACHED_CHECKS)
def parse_target(text: str, *, rules: UrlRules) -> Target:
    """Parse a URL and return it in its normalized spelling. Raises TargetRefused."""
    match = _URL.fullmatch(text) if len(text) <= MAX_URL_LENGTH else None
    if not match:
        raise UrlRefused(CodedText("lib.url_invalid", limit=f"{MAX_URL_LENGTH:,}"))
    scheme, rest = match["scheme"].lower(), match["rest"] or "/"
    _check_parts(scheme, match["authority"], rest, rules=rules)
    authority = _AUTHORITY.fullmatch(match["authority"])
    if not authority:
        raise UrlRefused(CodedText("lib.url_host"))
    host = rules.guard.check_host(authority["host"])
    port = int(authority["port"] or DEFAULT_PORTS[scheme])
    if port not in rules.ports and not (rules.guard.allow_private and 0 < port < 65_536):
        ports = " or ".join(map(str, sorted(rules.ports)))
        raise UrlRefused(CodedText("lib.url_port", port=port, ports=ports))
    host_text = f"[{host}]" if isinstance(host, IPv6Address) else str(host)
    path = rest if rest.startswith("/") else f"/{rest}"
    return Target(URL(f"{scheme}://{host_text}:{port}{path}", encoded=True), host)


def _check_parts(scheme: str, authority: str, rest: str, *, rules: UrlRules) -> None:
    if scheme != "https" and not (scheme == "http" and rules.guard.allow_private):
        raise UrlRefused(CodedText("lib.url_scheme"))
    if "@" in authority:
        raise UrlRefused(CodedText("lib.url_password"))
    if "#" in rest or "\\" in rest:
        raise UrlRefused(CodedText("lib.url_fragment"))
