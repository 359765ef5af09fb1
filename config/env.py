"""Typed readers for the environment.

A value that cannot be read never raises here: it is written down in `problems`, the default stands
in for it, and `config.checks` stops the start with all the sentences at once.
"""

import base64
import binascii
import os
import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network

Network = IPv4Network | IPv6Network

problems: list[str] = []


def text(name: str, default: str = "") -> str:
    """Return the variable without surrounding space; an empty one counts as unset."""
    return os.environ.get(name, "").strip() or default


def is_set(name: str) -> bool:
    return bool(text(name))


def integer(name: str, default: int, *, low: int, high: int) -> int:
    raw = text(name)
    if not raw:
        return default
    if re.fullmatch(r"-?[0-9]{1,9}", raw) and low <= int(raw) <= high:
        return int(raw)
    problems.append(f"{name} must be a whole number from {low} to {high}, not {raw!r}.")
    return default


def choice(name: str, default: str, *, options: Sequence[str]) -> str:
    raw = text(name, default)
    if raw in options:
        return raw
    problems.append(f"{name} must be one of {', '.join(options)}, not {raw!r}.")
    return default


def words(name: str, default: Sequence[str] = ()) -> list[str]:
    """Read a comma list; empty members are dropped."""
    return [word.strip() for word in text(name).split(",") if word.strip()] or list(default)


def seconds(name: str, default: Sequence[int]) -> list[int]:
    """Read a comma list of whole seconds, each from 0 to 30 days."""
    raw = words(name)
    if all(re.fullmatch(r"[0-9]{1,7}", word) and int(word) <= 30 * 86_400 for word in raw):
        return [int(word) for word in raw] or list(default)
    problems.append(f"{name} must be a comma list of whole seconds such as 60,180,300, not {text(name)!r}.")
    return list(default)


def ports(name: str, default: Sequence[int]) -> list[int]:
    """Read a comma list of ports."""
    raw = words(name)
    if all(re.fullmatch(r"[0-9]{1,5}", word) and 0 < int(word) < 65_536 for word in raw):
        return [int(word) for word in raw] or list(default)
    problems.append(f"{name} must be a comma list of ports such as 443,8443, not {text(name)!r}.")
    return list(default)


def servers(name: str) -> list[tuple[str, int]]:
    """Read a comma list of name servers, address:port; an address alone means port 53."""
    found: list[tuple[str, int]] = []
    for word in words(name):
        match = re.fullmatch(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<four>[0-9.]+))(?::(?P<port>[0-9]{1,5}))?", word)
        if match:
            found.append((match["six"] or match["four"], int(match["port"] or 53)))
            continue
        problems.append(f"{name} holds {word!r}, which is not address:port such as 127.0.0.1:53 or [::1]:53.")
    return found


def rate(name: str, default: tuple[int, int]) -> tuple[int, int] | None:
    """Read `50/s burst 100` as (a second, at once); off is None."""
    raw = text(name).lower()
    if raw == "off":
        return None
    found = re.fullmatch(r"([1-9][0-9]{0,5})/s +burst +([1-9][0-9]{0,5})", raw)
    if found:
        return int(found[1]), int(found[2])
    if raw:
        problems.append(f"{name} must be off, or such as {default[0]}/s burst {default[1]}, not {raw!r}.")
    return default


def networks(name: str) -> list[Network]:
    """Read a comma list of addresses and networks such as 10.0.0.0/8."""
    found: list[Network] = []
    for word in words(name):
        try:
            found.append(ip_network(word, strict=False))
        except ValueError:
            problems.append(f"{name} holds {word!r}, which is neither an address nor a network such as 10.0.0.0/8.")
    return found


def key_ring(name: str) -> list[tuple[str, bytes]]:
    """Read `id:base64,id:base64`, newest first; every key is 32 bytes."""
    ring: list[tuple[str, bytes]] = []
    for word in words(name):
        key_id, _, encoded = word.partition(":")
        key = _decoded(encoded)
        if re.fullmatch(r"[A-Za-z0-9]{1,16}", key_id) and len(key) == 32 and key_id not in dict(ring):
            ring.append((key_id, key))
            continue
        # The word itself is a secret: the sentence names its place only.
        problems.append(
            f"{name}: entry {len(ring) + 1} must be id:base64 of 32 random bytes with an id of its own, "
            "such as k1:$(openssl rand -base64 32)."
        )
    return ring


def _decoded(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return b""
