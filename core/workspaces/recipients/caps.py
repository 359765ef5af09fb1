"""Caps: how many emails a recipient may get in some time, by the rules of a workspace or key (docs/decisions/0389)."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from uuid import UUID

from core.lib.email_addresses import normalize_address
from core.lib.keyring import newest_key

PURPOSE = "cap-window"
MAX_CAPS = 3
# A window keeps the id and the time of each email.
MAX_COUNT = 100
# 30 days.
MAX_SECONDS = 2_592_000


class Per(StrEnum):
    RECIPIENT = "recipient"
    RECIPIENT_AND_TEMPLATE = "recipient_and_template"


class Exceeding(StrEnum):
    """What happens to an email that exceeds a cap."""

    REFUSE = "refuse"
    DROP = "drop"


@dataclass(frozen=True)
class Cap:
    """At most `count` emails in any `seconds`, for each recipient, or for each recipient and template."""

    count: int
    seconds: int
    per: Per = Per.RECIPIENT
    exceeding: Exceeding = Exceeding.REFUSE

    def window_id(self, owner_id: str, address: str, template_id: str | None) -> UUID:
        """Return the id of the window of a recipient, a keyed digest: nobody without APP_KEYS can try addresses.

        owner_id: of the workspace or key.
        A change of `count` keeps the window.
        """
        template = template_id or "" if self.per is Per.RECIPIENT_AND_TEMPLATE else "*"
        name = "\n".join((owner_id, str(self.seconds), template, normalize_address(address)))
        return UUID(bytes=hmac.digest(newest_key(PURPOSE).secret, name.encode(), hashlib.sha256)[:16])

    def to_json(self) -> dict[str, Any]:
        return {
            "count": self.count,
            "seconds": self.seconds,
            "per": self.per.value,
            "exceeding": self.exceeding.value,
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Cap":
        """Return a cap from to_json, or from the wire."""
        return cls(
            count=values["count"],
            seconds=values["seconds"],
            per=Per(values.get("per", Per.RECIPIENT)),
            exceeding=Exceeding(values.get("exceeding", Exceeding.REFUSE)),
        )
