"""Warning about APP_KEYS entries that stored data needs but that are missing.

Without such an entry, API keys made with it are refused and secrets sealed with it cannot be read. Links name no entry,
so nothing can be known about them.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core import checks
from django.db import Error
from django.db.models import F, Func, QuerySet, TextField, Value

from console.provisioning.models import ManagementKey, ManagementResponse
from console.system_mail.models import SystemMail, SystemMailState
from core.workspaces.models import ApiKey, RecoveryCode, SecondFactor
from domains.models import DkimKey
from webhooks.models import Webhook, WebhookSecret


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
    KeyUse("webhook headers", Webhook.objects.exclude(sealed_headers=""), "sealed_headers", "."),
    KeyUse("DKIM keys", DkimKey.objects.all(), "sealed_private_key", "."),
    KeyUse("stored responses", ManagementResponse.objects.exclude(sealed_body=""), "sealed_body", "."),
    KeyUse("system email", SystemMail.objects.filter(state=SystemMailState.WAITING), "sealed_text", "."),
)


def check_app_keys(databases: Sequence[str] | None = None, **_: Any) -> list[checks.CheckMessage]:
    """Warn about missing entries, for commands that check the database, such as migrate."""
    return [checks.Warning(message, id="postrider.W001") for message in missing_keys()] if databases else []


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
