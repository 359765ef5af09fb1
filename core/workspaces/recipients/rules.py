"""Recipient rules of workspaces, API keys and the installation (docs/decisions/0388, 0400).

All apply, and the strictest one wins. They are checked when an email is accepted and again when it is claimed.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, lru_cache
from typing import Any

from core.api.errors import InvalidFields
from core.lib.coded_texts import CodedText
from core.lib.email_addresses import InvalidAddress, normalize_address, parse_address, parse_recipient
from core.workspaces.recipients.caps import Cap

FIELD = "recipientRules"
# The owner of the caps of RECIPIENTS.
INSTALLATION = "installation"
MAX_ALLOWED = 200
MAX_ENTRY_LENGTH = 320
SUBDOMAINS = "@*."
FieldError = dict[str, str]


class Otherwise(IntEnum):
    """The treatment of recipients that are not allowed: the stricter, the higher."""

    REDIRECT = 1
    CAPTURE = 2
    REFUSE = 3

    @property
    def wire_name(self) -> str:
        return self.name.lower()


OTHERWISE = [one.wire_name for one in Otherwise]


@dataclass(frozen=True)
class Treatment:
    """The treatment of a recipient that is not allowed.

    redirect_to: the address that gets the message instead, with REDIRECT.
    """

    otherwise: Otherwise
    redirect_to: str = ""


@dataclass(frozen=True)
class RecipientRules:
    """The rules of a workspace, of a key or of the installation.

    allow: normalized addresses, domains such as `@example.com`, and `@*.example.com` for all subdomains of one; None
    for everybody.
    """

    allow: tuple[str, ...] | None = None
    otherwise: Otherwise = Otherwise.REFUSE
    redirect_to: str = ""
    caps: tuple[Cap, ...] = ()

    @property
    def treatment(self) -> Treatment:
        return Treatment(self.otherwise, self.redirect_to)

    @cached_property
    def _allowed(self) -> frozenset[str]:
        return frozenset(self.allow or ())

    def permits(self, address: str) -> bool:
        """Return whether a recipient is allowed, by an addr-spec from core.lib.email_addresses."""
        return self.allow is None or not self._allowed.isdisjoint(_entries_of(normalize_address(address)))

    @property
    def captures(self) -> bool:
        """Whether messages to others are captured."""
        return self.allow is not None and self.otherwise is Otherwise.CAPTURE

    @property
    def summary(self) -> list[str]:
        """Words for the audit log."""
        return [self.otherwise.wire_name]

    def to_json(self) -> dict[str, Any]:
        """Return the rules as they are stored and shown."""
        return {
            **({} if self.allow is None else {"allow": list(self.allow)}),
            "otherwise": self.otherwise.wire_name,
            **({"redirectTo": self.redirect_to} if self.redirect_to else {}),
            **({"caps": [cap.to_json() for cap in self.caps]} if self.caps else {}),
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any] | None) -> "RecipientRules | None":
        """Return the rules of to_json; None without rules."""
        if values is None:
            return None
        allow = values.get("allow")
        return cls(
            allow=None if allow is None else tuple(allow),
            otherwise=Otherwise[values["otherwise"].upper()],
            redirect_to=values.get("redirectTo", ""),
            caps=tuple(map(Cap.from_json, values.get("caps", ()))),
        )


@dataclass(frozen=True)
class AppliedRules:
    """The rules of a workspace, of the key that accepts, or has accepted, an email, and of the installation."""

    workspace: RecipientRules | None = None
    key: RecipientRules | None = None
    installation: RecipientRules | None = None

    def __bool__(self) -> bool:
        return bool(self.workspace or self.key or self.installation)

    def owned_caps(self, *, workspace_id: str, key_id: str) -> tuple[tuple[str, Cap], ...]:
        """Return the caps of all, each with the id of its owner."""
        owners = ((workspace_id, self.workspace), (key_id, self.key), (INSTALLATION, self.installation))
        return tuple((owner, cap) for owner, rules in owners if rules for cap in rules.caps)

    def treat(self, address: str) -> Treatment | None:
        """Return the treatment of a recipient; None if the message goes to them.

        Of two redirects, that of the workspace applies, of three that of the installation. One of the key goes to
        nobody whom the workspace does not allow, one of either to nobody whom the installation does not allow.
        """
        strictest: Treatment | None = None
        for rules in (self.key, self.workspace, self.installation):
            if rules is None or (rules.permits(address) and _permits_redirect(rules, strictest)):
                continue
            if strictest is None or rules.otherwise >= strictest.otherwise:
                strictest = rules.treatment
        return strictest


def read_rules(
    *,
    allow: Sequence[str] | None = None,
    otherwise: str = Otherwise.REFUSE.wire_name,
    redirect_to: str | None = None,
    caps: Sequence[Cap] = (),
) -> RecipientRules:
    """Return the rules in the form in which they are compared. Raises InvalidFields with all errors."""
    errors: list[FieldError] = []
    if allow is not None and len(allow) > MAX_ALLOWED:
        detail = CodedText("api.too_many_entries", limit=MAX_ALLOWED)
        raise InvalidFields([_error("allow", detail, code="max_length")])
    allowed = None if allow is None else tuple(dict.fromkeys(_read_entries(allow, errors)))
    rules = RecipientRules(allowed, Otherwise[otherwise.upper()], _read_target(redirect_to, errors), tuple(caps))
    if not errors and rules.otherwise is Otherwise.REDIRECT and not rules.redirect_to:
        errors.append(_error("redirectTo", CodedText("workspaces.redirect_to_missing"), code="required"))
    if rules.redirect_to and rules.otherwise is not Otherwise.REDIRECT:
        errors.append(_error("redirectTo", CodedText("workspaces.redirect_to_unused")))
    if allow is None and not caps:
        errors.append(_error("allow", CodedText("workspaces.rules_without_effect"), code="required"))
    if errors:
        raise InvalidFields(errors)
    return rules


@lru_cache(maxsize=256)
def read_stored_rules(text: str | None) -> RecipientRules | None:
    """Return rules from the JSON text that the database returns."""
    return RecipientRules.from_json(json.loads(text)) if text else None


def _permits_redirect(rules: RecipientRules, treatment: Treatment | None) -> bool:
    """Return whether rules allow the address to which the rules below them redirect."""
    target = treatment.redirect_to if treatment else ""
    return not target or target == rules.redirect_to or rules.permits(target)


def _entries_of(address: str) -> Iterator[str]:
    """Yield the entries that allow an address."""
    domain = address.rpartition("@")[2]
    yield address
    yield f"@{domain}"
    while "." in domain:
        domain = domain.partition(".")[2]
        yield f"{SUBDOMAINS}{domain}"


def _read_entries(entries: Sequence[str], errors: list[FieldError]) -> Iterator[str]:
    for index, entry in enumerate(entries):
        try:
            yield _normalize_entry(entry.strip())
        except InvalidAddress as error:
            errors.append(_error(f"allow[{index}]", str(error), code="invalid_entry"))


def _normalize_entry(text: str) -> str:
    """Return an entry in the form in which it is compared. Raises InvalidAddress."""
    if not text.startswith("@"):
        return normalize_address(parse_recipient(text).spec)
    prefix = SUBDOMAINS if text.startswith(SUBDOMAINS) else "@"
    try:
        return f"{prefix}{parse_address(f'a@{text.removeprefix(prefix)}').domain}"
    except InvalidAddress as error:
        raise InvalidAddress(CodedText("workspaces.not_an_allow_entry", text=repr(text[:80]))) from error


def _read_target(text: str | None, errors: list[FieldError]) -> str:
    try:
        return parse_address(text).spec if text else ""
    except InvalidAddress as error:
        errors.append(_error("redirectTo", str(error), code="invalid_email"))
        return ""


def _error(name: str, detail: str, *, code: str = "invalid") -> FieldError:
    return {"field": f"{FIELD}.{name}", "code": code, "detail": detail}
