"""The message of one recipient as sent: its headers and source, and the files of its email."""

from typing import Any

from django.http import Http404, HttpRequest

from console.dashboard.ui.preview import shown_source
from emails.listing.attachments import list_attachments
from emails.models import Attachment, Email, Recipient
from emails.sending.outgoing_messages import rebuild_message
from interfaces.inbound.inbox.reading import read_headers


def describe_message(recipient: Recipient) -> dict[str, Any]:
    """Return the headers and the source, which is cut."""
    source = rebuild_message(recipient)
    text, is_cut = shown_source(source)
    return {"headers": read_headers(source), "source": text, "is_cut": is_cut}


def find_recipient(request: HttpRequest, email: Email) -> Recipient:
    """Return the requested recipient of an email, by default the first.

    Raises Http404 for one of another email, and if the content is not kept.
    """
    wanted = request.GET.get("recipient", "")
    recipients = email.recipients.all()
    recipient = next((one for one in recipients if wanted in {"", one.id}), None)
    if recipient is None or not email.keeps_content:
        raise Http404
    # Already loaded; the recipient would read it again.
    recipient.email = email
    return recipient


def find_attachment(request: HttpRequest, email: Email) -> Attachment:
    """Return the attachment at the requested position, from 0. Raises Http404 if there is none."""
    position = request.GET.get("position", "0")
    file = next((file for file in list_attachments(email) if str(file.position) == position), None)
    if file is None:
        raise Http404
    return file
