"""Address for TLS reports: the TXT record of a domain at `_smtp._tls` (RFC 8460, section 3)."""

import re
from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

from core.lib.email_addresses import InvalidAddress, parse_address

RECORD_START = re.compile(r"v=TLSRPTv1[ \t]*;")
# The column has this size.
MAX_LENGTH = 500


def read_report_address(records: Sequence[str]) -> str:
    """Return where a domain wants its reports: its first valid mailto: URI, else the first https: one.

    Empty unless exactly one of the TXT records asks for reports. A mailto: URI is returned without a query.
    """
    own = [record for record in records if RECORD_START.match(record)]
    if len(own) != 1:
        return ""
    fields = [text.strip(" \t") for text in own[0].split(";")[1:]]
    listed = next((text.removeprefix("rua=") for text in fields if text.startswith("rua=")), "")
    uris = [uri.strip(" \t") for uri in listed.split(",")]
    addresses = [f"mailto:{address}" for uri in uris if (address := _address(uri))]
    return next(iter(addresses or filter(_is_url, uris)), "")


def _address(uri: str) -> str:
    """Return the address of a mailto: URI, empty for an invalid one and for other URIs."""
    if uri[:7].lower() != "mailto:" or len(uri) > MAX_LENGTH:
        return ""
    try:
        address = parse_address(unquote(uri[7:].partition("?")[0]))
    except InvalidAddress:
        return ""
    return "" if address.name else address.spec


def _is_url(uri: str) -> bool:
    if len(uri) > MAX_LENGTH or not uri.isascii() or not uri.isprintable() or " " in uri:
        return False
    try:
        parts = urlsplit(uri)
    except ValueError:
        return False
    return parts.scheme == "https" and bool(parts.hostname)
