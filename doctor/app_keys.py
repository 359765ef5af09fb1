"""Warning about APP_KEYS entries that stored data needs but that are missing.

Without such an entry, API keys made with it are refused and secrets sealed with it cannot be read. Links name no entry,
so nothing can be known about them.
"""

import logging
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import Error, connection
from django.db.models import F, Func, QuerySet, TextField, Value

from domains.models import DkimKey
from lib.forking import fork_once
from provisioning.models import ManagementKey, ManagementResponse
from system_mail.models import SystemMail, SystemMailState
from webhooks.models import WebhookSecret
from workspaces.models import ApiKey, RecoveryCode, SecondFactor

log = logging.getLogger("postrider.start")


@dataclass(frozen=True)
class KeyUse:
    """A column whose values begin with the id of an entry."""

    name: str
    rows: QuerySet[Any]
    column: str
    separator: str

    def key_ids(self) -> list[str]:
        arguments = F(self.column), Value(self.separator), Value(1)
        key_id = Func(*arguments, function="split_part", output_field=TextField())
        return list(self.rows.annotate(key_id=key_id).values_list("key_id", flat=True).distinct())


USES = (
    KeyUse("API keys", ApiKey.objects.filter(revoked_at=None), "secret_hash", ":"),
    KeyUse("management keys", ManagementKey.objects.filter(revoked_at=None), "secret_hash", ":"),
    KeyUse("recovery codes", RecoveryCode.objects.all(), "code_hash", ":"),
    KeyUse("second factors", SecondFactor.objects.all(), "sealed_secret", "."),
    KeyUse("webhook secrets", WebhookSecret.objects.all(), "sealed_secret", "."),
    KeyUse("DKIM keys", DkimKey.objects.all(), "sealed_private_key", "."),
    KeyUse("stored responses", ManagementResponse.objects.exclude(sealed_body=""), "sealed_body", "."),
    KeyUse("system email", SystemMail.objects.filter(state=SystemMailState.WAITING), "sealed_text", "."),
)


def check_app_keys(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Warn about missing entries, for commands that check the database, such as migrate."""
    return [checks.Warning(message, id="postrider.W001") for message in missing_keys()] if databases else []


def warn_of_missing_keys() -> None:
    """Log missing entries, in a forked process: a start does not wait for the database (docs/decisions/0147)."""
    fork_once(_log_missing_keys)


def missing_keys() -> list[str]:
    """Return a message for each missing entry; none while the database is unreachable or not migrated."""
    known = {key_id for key_id, _ in settings.APP_KEYS}
    uses = defaultdict(list)
    try:
        for use in USES:
            for key_id in use.key_ids():
                uses[key_id].append(use.name)
    except Error:
        return []
    return [
        f"APP_KEYS lacks the entry {key_id!r}, which is needed for {', '.join(uses[key_id])}. Restore it."
        for key_id in sorted(uses.keys() - known)
    ]


def _log_missing_keys() -> None:
    try:
        for message in missing_keys():
            log.warning(message)
    finally:
        connection.close()
