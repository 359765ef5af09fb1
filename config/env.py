"""Typed readers for the environment.

A value that cannot be read never raises here: it is written down in `problems`, the default stands
in for it, and `config.checks` stops the start with all the sentences at once.
"""

import base64
import binascii
import os
import re
from collections.abc import Sequence
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

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


def boolean(name: str, default: bool) -> bool:  # noqa: FBT001 - a setting, read by place
    raw = text(name).lower()
    if not raw:
        return default
    if raw in {"true", "false"}:
        return raw == "true"
    problems.append(f"{name} must be true or false, not {raw!r}.")
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


def percent(name: str, default: str) -> Decimal | None:
    """Read a percentage above 0 with at most three decimals; off is None."""
    raw = text(name, default).lower()
    if raw == "off":
        return None
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", raw) and 0 < Decimal(raw) <= 100:
        return Decimal(raw)
    problems.append(f"{name} must be off, or a percentage above 0 such as 0.3, not {raw!r}.")
    return None if default == "off" else Decimal(default)


def prefixed(prefix: str, *, but: Sequence[str]) -> dict[str, str]:
    """Return what the variables of a prefix say, by what follows it."""
    names = [name for name in os.environ if name.startswith(prefix) and name not in but]
    return {name.removeprefix(prefix): text(name) for name in names if is_set(name)}


def networks(name: str) -> list[Network]:
    """Read a comma list of addresses and networks such as 10.0.0.0/8."""
    found: list[Network] = []
    for word in words(name):
        try:
            found.append(ip_network(word, strict=False))
        except ValueError:
            problems.append(f"{name} holds {word!r}, which is neither an address nor a network such as 10.0.0.0/8.")
    return found


def servers(name: str) -> list[tuple[str, int]]:
    """Read a comma list of address:port such as 127.0.0.1:53,[::1]:53; without a port it is 53."""
    found: list[tuple[str, int]] = []
    for word in words(name):
        try:
            parts = urlsplit(f"//{word}")
            found.append((str(ip_address(parts.hostname or "")), parts.port or 53))
        except ValueError:
            problems.append(f"{name} holds {word!r}, which is no address with a port such as 127.0.0.1:53.")
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
