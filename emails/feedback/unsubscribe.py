"""Unsubscribing: suppresses the address and records one event on the timeline."""

from django.db import connection, transaction

from core.lib.ids import from_uuid, to_uuid
from core.workspaces.models import Workspace
from emails.links import UnsubscribeLink
from events.kinds import EventKind
from events.models import Event
from events.recording import NewEvent, record_events
from streams.services import suppressed_stream
from suppressions.models import Suppression
from suppressions.services import suppress_address

# Concurrent requests wait for the lock; the second one finds the event of the first.
LOCK = """
SELECT r.email_id, e.is_test OR r.diversion IS NOT NULL FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE r.id = %s AND e.workspace_id = %s FOR NO KEY UPDATE OF r
"""


@transaction.atomic
def unsubscribe(link: UnsubscribeLink) -> None:
    """Suppress the address of a link in its stream or its workspace, even if the email is deleted.

    Repeating it changes nothing, unless an owner has removed the suppression: then it is added again. The link of a
    test email, or of a message that its recipient did not get, only records the event.
    """
    workspace = Workspace.objects.filter(id=link.workspace_id).first()
    if workspace is None:
        return
    if record_unsubscribe(link):
        reason = Suppression.Reason.UNSUBSCRIBE
        blocked = suppressed_stream(workspace.id, link.stream, reason)
        suppress_address(workspace, address=link.address, reason=reason, stream=blocked)


def record_unsubscribe(link: UnsubscribeLink) -> bool:
    """Record the event, once; return whether the link suppresses, as that of every deleted email does."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [to_uuid(link.recipient_id), to_uuid(link.workspace_id, prefix="ws_")])
        row = cursor.fetchone()
    if row is None:
        return True
    email_id, is_without_effect = from_uuid(row[0]), row[1]
    earlier = Event.objects.filter(email=email_id, recipient=link.recipient_id, kind=EventKind.UNSUBSCRIBED)
    if not earlier.exists():
        record_events([NewEvent(EventKind.UNSUBSCRIBED, email_id, link.recipient_id, link.address)])
    return not is_without_effect
