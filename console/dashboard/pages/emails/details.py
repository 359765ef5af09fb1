"""The page of an email, around its content."""

import json
from collections.abc import Sequence
from typing import Any

from django.db.models import Q
from django.utils.formats import date_format
from django.utils.timezone import localtime

from console.dashboard.pages.emails.recipients import partial_failures, recipient_rows
from console.dashboard.pages.emails.timeline import read_timeline
from console.dashboard.ui.labels import DELIVERY_TONES, EMAIL_TONES
from core.lib.translation import translate
from emails.listing.attachments import list_attachments
from emails.models import Email
from emails.rendered_content import render_email
from emails.sending.scheduling import is_cancellable
from emails.sending.sending_checks import Wait
from emails.states import EmailStatus
from streams.models import Stream
from templates_app.models import Template


def describe_email(email: Email, *, streams: Sequence[Stream], wait: Wait | None) -> dict[str, Any]:
    """Return the context of the page, in a number of queries that does not grow with the events.

    streams: the workspace's; none if it has only `main`.
    wait: that of the email.
    """
    return {
        **summarize_email(email),
        "wait": wait,
        "wait_text": translate(wait.describe(date_format(localtime(wait.next_at), "DATETIME_FORMAT"))) if wait else "",
        "content": render_email(email),
        "files": list_attachments(email),
        "recipients": recipient_rows(email, streams=streams),
        "stream": next((stream for stream in streams if stream.slug == email.stream), None),
        "used_template": _template(email),
        "metadata": json.dumps(email.metadata, ensure_ascii=False, indent=2) if email.metadata else "",
        "neighbours": {"newer": _newer(email), "older": _older(email)},
        "is_scheduled": email.status == EmailStatus.SCHEDULED,
    }


def summarize_email(email: Email) -> dict[str, Any]:
    """Return the context of the side panel: the state and the timeline."""
    return {
        "email": email,
        "failures": partial_failures([email]).get(email.id),
        "timeline": read_timeline(email),
        "is_cancellable": is_cancellable(email),
        "tones": EMAIL_TONES,
        "delivery_tones": DELIVERY_TONES,
    }


def _template(email: Email) -> Template | None:
    """Return the template of an email; None without one, or if it was deleted."""
    if email.template_id is None:
        return None
    return Template.objects.filter(workspace=email.workspace_id, id=email.template_id).first()


def _newer(email: Email) -> str | None:
    after = Q(created_at__gt=email.created_at) | Q(created_at=email.created_at, id__gt=email.id)
    emails = Email.objects.filter(after, workspace=email.workspace_id, created_at__gte=email.created_at)
    return emails.order_by("created_at", "id").values_list("id", flat=True).first()


def _older(email: Email) -> str | None:
    before = Q(created_at__lt=email.created_at) | Q(created_at=email.created_at, id__lt=email.id)
    emails = Email.objects.filter(before, workspace=email.workspace_id, created_at__lte=email.created_at)
    return emails.order_by("-created_at", "-id").values_list("id", flat=True).first()
