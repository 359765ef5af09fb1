"""MTA-STS policies (RFC 8461): the TXT record of a domain, and the file of its policy host."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

MAX_POLICY_BYTES = 64 * 1024
# RFC 8461, section 3.2.
MAX_AGE_SECONDS = 31_557_600
MAX_MX = 100
# Section 3.1; a record with another beginning is not one of MTA-STS.
RECORD_START = re.compile(r"v=STSv1[ \t]*;")
RECORD_FIELD = re.compile(r"([A-Za-z0-9][A-Za-z0-9_.-]{0,31})=([!-:<>-~]+)")
RECORD_ID = re.compile(r"[A-Za-z0-9]{1,32}")
POLICY_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,31}")
CONTROL = re.compile("[\x00-\x08\x0a-\x1f\x7f]")
LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
MX = re.compile(rf"(?:\*\.)?{LABEL}(?:\.{LABEL})+")


class StsMode(StrEnum):
    """What a policy asks for: `none` is the end of an earlier policy."""

    ENFORCE = "enforce"
    TESTING = "testing"
    NONE = "none"


class InvalidPolicy(ValueError):
    """Raised for a file that is not a policy, with the reason as a sentence."""


@dataclass(frozen=True)
class StsPolicy:
    """A policy.

    mx: names of mail hosts in lower case; `*.` stands for one label.
    max_age_seconds: for which it may be cached, a year at most.
    """

    mode: StsMode
    mx: tuple[str, ...]
    max_age_seconds: int

    def permits(self, host: str) -> bool:
        """Return whether a mail host is one of the policy (section 4.1)."""
        name = host.rstrip(".").lower()
        return name in self.mx or f"*.{name.partition('.')[2]}" in self.mx


def read_record_id(records: Sequence[str]) -> str | None:
    """Return the id in the TXT records of `_mta-sts`; None unless exactly one of them announces a policy."""
    own = [record for record in records if RECORD_START.match(record)]
    if len(own) != 1:
        return None
    texts = [text.strip(" \t") for text in own[0].split(";")[1:]]
    if not texts[-1]:
        texts.pop()
    fields = [RECORD_FIELD.fullmatch(text) for text in texts]
    if not all(fields):
        return None
    found = next((match[2] for match in fields if match and match[1] == "id"), "")
    return found if RECORD_ID.fullmatch(found) else None


def parse_policy(body: bytes) -> StsPolicy:
    """Return the policy in a file of at most MAX_POLICY_BYTES (section 3.2). Raises InvalidPolicy.

    Lines end with CRLF or LF. Unknown keys are ignored, and so is a repeated one other than `mx`.
    """
    fields, mx = _read_fields(body)
    if fields.get("version") != "STSv1":
        raise InvalidPolicy("The version is not STSv1.")
    mode, max_age = fields.get("mode", ""), fields.get("max_age", "")
    if mode not in {*StsMode}:
        raise InvalidPolicy("The mode is not enforce, testing or none.")
    if not re.fullmatch(r"[0-9]{1,10}", max_age):
        raise InvalidPolicy("max_age is not a number of seconds.")
    if not mx and mode != StsMode.NONE:
        raise InvalidPolicy("The policy names no mail host (mx).")
    return StsPolicy(StsMode(mode), mx, min(int(max_age), MAX_AGE_SECONDS))


def _read_fields(body: bytes) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the first value of each key, and all mail hosts. Raises InvalidPolicy."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise InvalidPolicy("The policy is not UTF-8.") from error
    fields, mx = dict[str, str](), list[str]()
    for number, row in enumerate(text.split("\n"), 1):
        line = row.removesuffix("\r").strip(" \t")
        if not line:
            continue
        key, colon, value = line.partition(":")
        value = value.strip(" \t")
        if not colon or not POLICY_KEY.fullmatch(key) or CONTROL.search(value):
            raise InvalidPolicy(f"Line {number} is not a field such as mode: enforce.")
        if key == "mx":
            mx.append(_mail_host(value))
        fields.setdefault(key, value)
        if len(mx) > MAX_MX:
            raise InvalidPolicy(f"The policy names more than {MAX_MX} mail hosts.")
    return fields, tuple(dict.fromkeys(mx))


def _mail_host(value: str) -> str:
    name = value.lower().rstrip(".")
    if len(name) > 255 or not MX.fullmatch(name):
        raise InvalidPolicy("A mail host (mx) is neither a name nor *. and a name.")
    return name
