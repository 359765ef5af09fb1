"""Environment variables, read with types.

An invalid value never raises here: its message is added to `problems`, the default replaces it, and `config.checks`
reports all messages at startup.
"""

import base64
import binascii
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from urllib.parse import urlsplit

from core.delivery.receivers import ReceiverTable
from core.delivery.receivers_file import InvalidReceiversFile, built_in_receivers, read_receivers
from core.delivery.recipients import Diversion, InvalidRecipients, RecipientSetting, is_path, read_recipients
from core.delivery.transports.transports_file import (
    HOST_NAME,
    InvalidTransportsFile,
    Transports,
    read_transports,
    single_transport,
)
from core.workspaces.plans import BUILT_IN, InvalidPlans, Plan, read_plans
from core.workspaces.recipients.rules import RecipientRules
from core.workspaces.recipients.rules_file import InvalidRulesFile, read_rules_file

Network = IPv4Network | IPv6Network

problems: list[str] = []
# The settings that were read, in order, for docs/settings.md.
declared: "dict[str, DeclaredSetting]" = {}


@dataclass(frozen=True)
class DeclaredSetting:
    """A setting.

    default: as written in the environment.
    form: the permitted values.
    """

    default: str
    form: str


# Settings that may also be given as NAME_FILE, the path of a file with the value (docs/decisions/0105); all settings
# with the prefix are included.
SECRETS = frozenset(
    {
        "APP_KEYS",
        "CANARY_PING_URL",
        "DATABASE_URL",
        "METRICS_TOKEN",
        "OIDC_CLIENT_SECRET",
        "REDIS_URL",
        "RSPAMD_PASSWORD",
        "SECRET_KEY",
        "SMTP_URL",
    }
)
SECRET_PREFIX = "ANYMAIL_"  # noqa: S105 - the beginning of a name
FILE_SUFFIX = "_FILE"
MAX_SECRET_BYTES = 65_536
MAX_BLOCK_LISTS = 10


def text(name: str, default: str = "") -> str:
    """Return the variable without surrounding white space; an empty one counts as unset.

    A secret is read from the file that NAME_FILE names, if that is set.
    """
    _declare(name, default, "")
    value = os.environ.get(name, "").strip()
    path = os.environ.get(name + FILE_SUFFIX, "").strip() if is_secret(name) else ""
    if path and value:
        _report(f"{name} and {name}_FILE are both set. Unset one of them.")
    return (_read_secret(name, path) if path else value) or default


def _declare(name: str, default: object, form: str) -> None:
    declared.setdefault(name, DeclaredSetting(str(default), form))


def is_secret(name: str) -> bool:
    return name in SECRETS or name.startswith(SECRET_PREFIX)


def is_set(name: str) -> bool:
    """Return whether a setting is given, also by a file that cannot be read: that has its own message."""
    return bool(text(name)) or (is_secret(name) and bool(os.environ.get(name + FILE_SUFFIX, "").strip()))


def _read_secret(name: str, path: str) -> str:
    """Return the content of the file of a secret, and "" with a message if there is none."""
    try:
        with Path(path).open("rb") as file:
            value = file.read(MAX_SECRET_BYTES).decode().strip()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not text"
        _report(f"{name}_FILE: {path} cannot be read: {reason}.")
        return ""
    if not value:
        _report(f"{name}_FILE: {path} is empty.")
    return value


def _report(message: str) -> None:
    # A setting is read more than once.
    if message not in problems:
        problems.append(message)


def integer(name: str, default: int, *, low: int, high: int) -> int:
    _declare(name, default, f"a whole number from {low} to {high}")
    raw = text(name)
    if not raw:
        return default
    if re.fullmatch(r"-?[0-9]{1,18}", raw) and low <= int(raw) <= high:
        return int(raw)
    problems.append(f"{name} must be a whole number from {low} to {high}, not {raw!r}.")
    return default


def boolean(name: str, default: bool) -> bool:  # noqa: FBT001 - a default, read by position
    _declare(name, str(default).lower(), "true or false")
    raw = text(name).lower()
    if not raw:
        return default
    if raw in {"true", "false"}:
        return raw == "true"
    problems.append(f"{name} must be true or false, not {raw!r}.")
    return default


def color(name: str, default: str) -> str:
    """Read a color as #rrggbb."""
    form = "a color such as #4f46e5"
    _declare(name, default, form)
    raw = text(name, default).lower()
    if re.fullmatch(r"#[0-9a-f]{6}", raw):
        return raw
    _report(f"{name} must be {form}, not {raw!r}.")
    return default


def choice(name: str, default: str, *, options: Sequence[str]) -> str:
    _declare(name, default, f"one of {', '.join(options)}")
    raw = text(name, default)
    if raw in options:
        return raw
    problems.append(f"{name} must be one of {', '.join(options)}, not {raw!r}.")
    return default


def string_list(name: str, default: Sequence[str] = ()) -> list[str]:
    """Read a comma-separated list; empty entries are dropped."""
    _declare(name, ",".join(default), "a comma-separated list")
    return [entry.strip() for entry in text(name).split(",") if entry.strip()] or list(default)


def block_lists(name: str, default: Sequence[str]) -> list[str]:
    """Read the zones of block lists, separated by commas or spaces. A variable that is set but empty means none."""
    _declare(name, ",".join(default), f"a comma-separated list of up to {MAX_BLOCK_LISTS} DNS names; empty for none")
    value = os.environ.get(name)
    if value is None:
        return list(default)
    zones = list(dict.fromkeys(zone.lower().rstrip(".") for zone in value.replace(",", " ").split()))
    if len(zones) <= MAX_BLOCK_LISTS and all(HOST_NAME.fullmatch(zone) for zone in zones):
        return zones
    # The name may contain the key of a customer.
    problems.append(f"{name} must be at most {MAX_BLOCK_LISTS} DNS names such as {default[0]}, separated by commas.")
    return list(default)


def choices(name: str, *, options: Sequence[str]) -> list[str]:
    """Read a comma-separated list of options."""
    raw = string_list(name)
    if set(raw) <= set(options):
        return raw
    problems.append(f"{name} must be a comma-separated list of {', '.join(options)}, not {text(name)!r}.")
    return []


def seconds(name: str, default: Sequence[int]) -> list[int]:
    """Read a comma-separated list of whole seconds, each from 0 to 30 days."""
    _declare(name, ",".join(map(str, default)), "a comma-separated list of whole seconds")
    raw = string_list(name)
    if all(re.fullmatch(r"[0-9]{1,7}", entry) and int(entry) <= 30 * 86_400 for entry in raw):
        return [int(entry) for entry in raw] or list(default)
    problems.append(f"{name} must be a comma-separated list of seconds such as 60,180,300, not {text(name)!r}.")
    return list(default)


def ports(name: str, default: Sequence[int]) -> list[int]:
    """Read a comma-separated list of ports; none is an empty list."""
    _declare(name, ",".join(map(str, default)), "a comma-separated list of ports, or none")
    raw = string_list(name)
    if raw == ["none"]:
        return []
    if all(re.fullmatch(r"[0-9]{1,5}", entry) and 0 < int(entry) < 65_536 for entry in raw):
        return [int(entry) for entry in raw] or list(default)
    problems.append(f"{name} must be a comma-separated list of ports such as 443,8443, not {text(name)!r}.")
    return list(default)


def rate(name: str, default: tuple[int, int]) -> tuple[int, int] | None:
    """Read `50/s burst 100` as (requests per second, burst); off is None."""
    _declare(name, f"{default[0]}/s burst {default[1]}", "off, or requests per second and in a burst")
    raw = text(name).lower()
    if raw == "off":
        return None
    match = re.fullmatch(r"([1-9][0-9]{0,5})/s +burst +([1-9][0-9]{0,5})", raw)
    if match:
        return int(match[1]), int(match[2])
    if raw:
        problems.append(f"{name} must be off, or a rate such as {default[0]}/s burst {default[1]}, not {raw!r}.")
    return default


def percent(name: str, default: str) -> Decimal | None:
    """Read a percentage above 0 with at most three decimals; off is None."""
    _declare(name, default, "off, or a percentage above 0")
    raw = text(name, default).lower()
    if raw == "off":
        return None
    if re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,3})?", raw) and 0 < Decimal(raw) <= 100:
        return Decimal(raw)
    problems.append(f"{name} must be off, or a percentage above 0 such as 0.3, not {raw!r}.")
    return None if default == "off" else Decimal(default)


def prefixed(prefix: str, *, exclude: Sequence[str]) -> dict[str, str]:
    """Return the variables that start with a prefix, by the rest of their names."""
    names = {name.removesuffix(FILE_SUFFIX) for name in os.environ if name.startswith(prefix)}
    return {name.removeprefix(prefix): text(name) for name in sorted(names) if name not in exclude and text(name)}


def networks(name: str) -> list[Network]:
    """Read a comma-separated list of addresses and networks such as 10.0.0.0/8."""
    _declare(name, "", "a comma-separated list of addresses and networks")
    parsed: list[Network] = []
    for entry in string_list(name):
        try:
            parsed.append(ip_network(entry, strict=False))
        except ValueError:
            problems.append(f"{name}: {entry!r} is neither an address nor a network such as 10.0.0.0/8.")
    return parsed


def servers(name: str) -> list[tuple[str, int]]:
    """Read a comma-separated list of address:port such as 127.0.0.1:53,[::1]:53; the default port is 53."""
    _declare(name, "", "a comma-separated list of address:port")
    parsed: list[tuple[str, int]] = []
    for entry in string_list(name):
        try:
            parts = urlsplit(f"//{entry}")
            parsed.append((str(ip_address(parts.hostname or "")), parts.port or 53))
        except ValueError:
            problems.append(f"{name}: {entry!r} is not an address with a port such as 127.0.0.1:53.")
    return parsed


def plans(path: str) -> dict[str, Plan]:
    """Return the plans, with those of a file; only the built-in ones if it cannot be used."""
    if path:
        try:
            return read_plans(Path(path))
        except InvalidPlans as error:
            problems.append(f"PLANS_FILE: {error}")
    return BUILT_IN


def transports(path: str, *, kind: str) -> Transports:
    """Return the transports of a file; without one, or if it cannot be used, the one of this kind."""
    if path:
        try:
            return read_transports(Path(path))
        except InvalidTransportsFile as error:
            problems.append(f"TRANSPORTS_FILE: {error}")
    return single_transport(kind)


def receivers(path: str) -> ReceiverTable:
    """Return the table of receivers, with the changes of a file; without them if it cannot be used."""
    if path:
        try:
            return read_receivers(Path(path))
        except InvalidReceiversFile as error:
            problems.append(f"RECEIVERS_FILE: {error}")
    return built_in_receivers()


def recipients(name: str, default: str) -> RecipientSetting[RecipientRules]:
    """Read who gets the messages; a value that cannot be used captures them until the start is refused."""
    _declare(name, default, "all, captured, redirect: with an address, or the path of a file")
    value = text(name, default)
    try:
        return RecipientSetting(rules=read_rules_file(Path(value))) if is_path(value) else read_recipients(value)
    except InvalidRecipients as error:
        problems.append(f"{name} {error}")
    except InvalidRulesFile as error:
        problems.append(f"{name}: {error}")
    return RecipientSetting(Diversion.CAPTURED)


def host_and_port(name: str, default: str) -> tuple[str, int]:
    """Read host:port, such as inbound:25 or [::1]:25."""
    _declare(name, default, "host:port")
    for entry in (text(name, default), default):
        try:
            parts = urlsplit(f"//{entry}")
            if parts.hostname and parts.port and not (parts.path or parts.username):
                return parts.hostname, parts.port
        except ValueError:
            pass
        problems.append(f"{name} must be host:port, not {entry!r}.")
    raise AssertionError(default)


def key_ring(name: str) -> list[tuple[str, bytes]]:
    """Read `id:base64,id:base64`, newest first; each key has 32 bytes."""
    _declare(name, "", "a comma-separated list of id:base64")
    ring: list[tuple[str, bytes]] = []
    for number, entry in enumerate(string_list(name), 1):
        key_id, _, encoded = entry.partition(":")
        key = _decode(encoded)
        if re.fullmatch(r"[A-Za-z0-9]{1,16}", key_id) and len(key) == 32 and key_id not in dict(ring):
            ring.append((key_id, key))
            continue
        # The entry is a secret: the message contains only its position.
        problems.append(
            f"{name}: entry {number} must be id:base64 of 32 random bytes with a unique id, "
            "such as k1:$(openssl rand -base64 32)."
        )
    return ring


def _decode(encoded: str) -> bytes:
    try:
        return base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        return b""
