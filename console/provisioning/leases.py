"""Leases of configuration runs: one run at a time changes a workspace (docs/decisions/0193)."""

from datetime import timedelta

from django.db.models.functions import Now

from console.provisioning.models import ConfigurationLease
from core.api.errors import Problem
from core.lib.datetimes import format_datetime
from core.lib.sql import run

# A run renews its lease before each change; the longest of them takes less.
LIFETIME = timedelta(minutes=2)
RETRY_AFTER_SECONDS = 2
# The subject of a run that may create workspaces.
ALL_WORKSPACES = "workspaces"
ACQUIRE = """
INSERT INTO provisioning_configurationlease AS held (subject, token, expires_at) VALUES (%s, %s, now() + %s)
    ON CONFLICT (subject) DO UPDATE SET token = EXCLUDED.token, expires_at = EXCLUDED.expires_at
    WHERE held.token = EXCLUDED.token OR held.expires_at <= now()
RETURNING expires_at
"""


class ConfigurationInProgress(Problem):
    """Another run of `postrider apply` changes this workspace.

    Wait for the number of seconds in `Retry-After` and repeat the request. A run that was killed blocks others for two
    minutes.
    """

    status, code, title = 409, "configuration_in_progress", "Configuration in progress"
    example = "Another run changes the configuration of this workspace. Try again in 2 s."
    header_names = ("Retry-After",)


def take_lease(subject: str, *, token: str) -> str:
    """Take or renew the lease of a subject, and return its end. Raises ConfigurationInProgress."""
    rows = run(ACQUIRE, [subject, token, LIFETIME])
    if not rows:
        raise ConfigurationInProgress(
            f"Another run changes the configuration of this workspace. Try again in {RETRY_AFTER_SECONDS} s.",
            headers={"Retry-After": str(RETRY_AFTER_SECONDS)},
        )
    ((expires_at,),) = rows
    return format_datetime(expires_at)


def end_lease(subject: str, *, token: str) -> None:
    """End the lease of a run; that of another one stays."""
    ConfigurationLease.objects.filter(subject=subject, token=token).delete()


def delete_expired_leases() -> None:
    ConfigurationLease.objects.filter(expires_at__lt=Now()).delete()
