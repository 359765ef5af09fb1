"""Acts on webhooks: create, change, delete, rotate the secret, test, replay; and announce what happened."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models.functions import Now

from api.errors import NotFound
from lib.ids import to_uuid
from lib.worker import wakeup
from webhooks.models import Webhook, WebhookDelivery, WebhookSecret
from webhooks.publish import Announcement, announce, write
from webhooks.samples import sample_for
from webhooks.sending.queue import discard, lag
from webhooks.sending.retries import WINDOW
from webhooks.sending.signing import new_secret
from webhooks.sending.targets import check_target
from workspaces.audit import Act, note
from workspaces.errors import PlanLimitReached
from workspaces.models import Workspace

__all__ = ["Announcement", "announce", "lag"]

MAX_WEBHOOKS = 20
OVERLAP = timedelta(hours=24)
# Beside the newest: rotating all day must not make the headers grow.
MAX_OLD_SECRETS = 3

# A replay begins anew: a window of its own, the attempts from the first. What is pending is only made due.
REPLAY = """
INSERT INTO webhooks_pending (delivery_id, webhook_id, stage, due_at, expires_at, fence, attempts, by_hand)
VALUES (%(delivery)s, %(webhook)s, 1, now(), now() + %(window)s, 0, 0, true)
    ON CONFLICT (delivery_id) DO UPDATE SET stage = 1, due_at = now(), by_hand = true
    WHERE webhooks_pending.stage = 0
"""


def create_webhook(workspace: Workspace, *, url: str, events: Sequence[str]) -> tuple[Webhook, str]:
    """Create an endpoint; return it with its secret, which is not told again.

    Raises InvalidFields with forbidden_target, and PlanLimitReached at 20.
    """
    check_target(url)
    webhook, secret = Webhook(workspace=workspace, url=url, events=list(events)), new_secret()
    with transaction.atomic():
        Workspace.objects.select_for_update().get(id=workspace.id)
        if workspace.webhooks.count() >= MAX_WEBHOOKS:
            detail = f"A workspace has at most {MAX_WEBHOOKS} webhooks; delete one."
            raise PlanLimitReached(detail, resource="webhooks", limit=MAX_WEBHOOKS)
        webhook.save(force_insert=True)
        WebhookSecret(webhook=webhook).with_secret(secret).save(force_insert=True)
        note(workspace, Act.WEBHOOK_CREATED, about=url)
    webhook.refresh_from_db()
    return webhook, secret


def update_webhook(webhook: Webhook, *, changes: Mapping[str, Any]) -> Webhook:
    """Change url, events or active. Turning off ends what waits; turning on clears the reason.

    Raises InvalidFields with forbidden_target, NotFound when it was deleted meanwhile.
    """
    if "url" in changes:
        check_target(changes["url"])
    fields = dict(changes)
    if "active" in changes:
        fields |= {"disabled_reason": "", "failing_since": None}
    with transaction.atomic():
        # Before the endpoint's own row: the order in which outcomes are recorded.
        if changes.get("active") is False:
            discard(webhook.id)
        if fields and not Webhook.objects.filter(id=webhook.id).update(**fields):
            raise _gone()
        if fields:
            note(webhook.workspace, Act.WEBHOOK_CHANGED, about=f"{webhook.url}: {', '.join(changes)}")
    webhook.refresh_from_db()
    return webhook


@transaction.atomic
def delete_webhook(webhook: Webhook) -> None:
    """Delete an endpoint: nothing more is posted to it. Raises NotFound when somebody else was faster.

    Its deliveries cannot be reached any more; retention deletes their rows (docs/decisions/0034).
    """
    discard(webhook.id)
    _, deleted = Webhook.objects.filter(id=webhook.id).delete()
    if not deleted.get("webhooks.Webhook"):
        raise _gone()
    note(webhook.workspace, Act.WEBHOOK_DELETED, about=webhook.url)


@transaction.atomic
def rotate_secret(webhook: Webhook) -> str:
    """Give an endpoint a new secret and return it; the old one signs beside it for 24 hours."""
    # Two rotations at once take turns.
    if not Webhook.objects.select_for_update(no_key=True).filter(id=webhook.id).exists():
        raise _gone()
    secrets = WebhookSecret.objects.filter(webhook=webhook)
    secrets.filter(expires_at=None).update(expires_at=Now() + OVERLAP)
    kept = secrets.valid().values_list("id", flat=True)[:MAX_OLD_SECRETS]
    secrets.exclude(id__in=list(kept)).delete()
    secret = new_secret()
    WebhookSecret(webhook=webhook).with_secret(secret).save(force_insert=True)
    note(webhook.workspace, Act.WEBHOOK_ROTATED, about=webhook.url)
    return secret


def send_test(webhook: Webhook) -> WebhookDelivery:
    """Post a sample event, whether the endpoint is on or off. Raises InvalidFields with forbidden_target."""
    check_target(webhook.url)
    with transaction.atomic():
        (delivery_id,) = write([(sample_for(webhook), webhook.id)])
    return WebhookDelivery.objects.select_related("pending", "event").get(id=delivery_id)


@transaction.atomic
def replay_delivery(delivery: WebhookDelivery) -> WebhookDelivery:
    """Post a delivery again: the same bytes under the same id, whatever became of it before.

    One that is pending is made due now; one that is under way stays as it is.
    """
    values: dict[str, Any] = {
        "delivery": to_uuid(delivery.id, prefix="whd_"),
        "webhook": to_uuid(delivery.webhook_id, prefix="wh_"),
        "window": WINDOW,
    }
    with connection.cursor() as cursor:
        cursor.execute(REPLAY, values)
    WebhookDelivery.objects.filter(id=delivery.id).update(status=WebhookDelivery.Status.PENDING)
    transaction.on_commit(lambda: wakeup.ring("webhooks"))
    return WebhookDelivery.objects.select_related("pending", "event").get(id=delivery.id)


def _gone() -> NotFound:
    return NotFound("There is nothing here, or it is not yours.")
