"""The state of the canary for `/readyz`, `/metrics` and doctor, from the rows alone: also without beat and workers."""

from collections.abc import Sequence
from datetime import timedelta

from django.conf import settings

from console.system_mail.models import CanaryRun

# In intervals: a run is late after one, so that a missing next one is noticed before the second ends.
MISSING_AFTER = 1.5


def find_warnings(*, has_workers: bool) -> list[str]:
    """Return a message for each transport whose last canary is late, and one if no further canary is sent."""
    if not settings.CANARY_MINUTES:
        return []
    if is_paused():
        return [f"No canary is sent: RECIPIENTS lets no email leave for {settings.CANARY_ADDRESS}."]
    warnings = [_describe(run) for run in CanaryRun.objects.newest_ended() if run.is_late]
    if is_missing():
        cause = "beat is not running" if has_workers else "no worker is running"
        minutes = round(MISSING_AFTER * settings.CANARY_MINUTES)
        warnings.append(f"No canary has been sent for {minutes} minutes: {cause}.")
    return warnings


def is_paused() -> bool:
    """Return whether RECIPIENTS keeps canaries in the installation, so that none could come back (0400)."""
    return not settings.RECIPIENTS.lets_pass(settings.CANARY_ADDRESS)


def is_missing() -> bool:
    """Return whether the next canary is not sent, because beat or the workers do not run."""
    return not CanaryRun.objects.of_last_intervals(MISSING_AFTER).exists()


def last_durations(runs: Sequence[CanaryRun]) -> dict[str, timedelta]:
    """Return the time that the last canary of each transport needed to come back; not of late ones."""
    return {run.transport: run.returned_at - run.started_at for run in runs if run.returned_at and not run.is_late}


def _describe(run: CanaryRun) -> str:
    reason = f" ({run.explanation})" if run.explanation else ""
    return f"The canary of the transport {run.transport} is late. The last stage that worked: {run.stage}{reason}."
