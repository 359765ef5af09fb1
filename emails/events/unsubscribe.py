"""Somebody wants no more mail: the address is suppressed, and the timeline says so once."""

from django.db import connection, transaction

from emails.events.timeline import NewEvent, add_events
from emails.models import Event
from emails.sending.links import UnsubscribeLink
from lib.ids import from_uuid, to_uuid
from suppressions.models import Suppression
from suppressions.services import suppress_address
from workspaces.models import Workspace

# Two clicks at once meet at the lock; the second one finds the event of the first.
LOCK = """
SELECT r.email_id FROM emails_recipient r JOIN emails_email e ON e.id = r.email_id
 WHERE r.id = %s AND e.workspace_id = %s FOR NO KEY UPDATE OF r
"""


@transaction.atomic
def unsubscribe(link: UnsubscribeLink) -> None:
    """Block the address of a link in its workspace, whether or not the email is still there.

    Doing it again changes nothing; after the owner has removed the address from the list, it blocks it again.
    """
    workspace = Workspace.objects.filter(id=link.workspace_id).first()
    if workspace is None:
        return
    _tell_once(link)
    suppress_address(workspace, address=link.address, reason=Suppression.Reason.UNSUBSCRIBE)


def _tell_once(link: UnsubscribeLink) -> None:
    with connection.cursor() as cursor:
        cursor.execute(LOCK, [to_uuid(link.recipient_id), to_uuid(link.workspace_id, prefix="ws_")])
        row = cursor.fetchone()
    if row is None:
        return
    email_id = from_uuid(row[0])
    told = Event.objects.filter(email=email_id, recipient=link.recipient_id, kind=Event.Kind.UNSUBSCRIBED)
    if not told.exists():
        add_events([NewEvent(Event.Kind.UNSUBSCRIBED, email_id, link.recipient_id, link.address)])
