"""A canary that came back to the inbound server is stored; a worker checks its signature, which needs the DNS."""

from typing import Any

from django.db.models.functions import Now
from django.dispatch import receiver

from console.system_mail.models import CanaryRun
from interfaces.inbound.canary import canary_returned


@receiver(canary_returned)
def keep_returned(run_id: str, source: bytes, **signal: Any) -> None:
    """Store that a canary came back; a copy of it changes nothing."""
    CanaryRun.objects.filter(id=run_id, returned_at=None).update(returned_at=Now(), source=source)
