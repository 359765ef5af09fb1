"""Purposes of streams: the properties with which the form of a new stream begins (docs/decisions/0393)."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from core.workspaces.models import Workspace
from streams.models import Stream

HOUR, DAY = 3600, 86_400


@dataclass(frozen=True)
class Purpose:
    """A purpose.

    name, slug: the proposed name and id.
    values: other fields of the form for a new stream.
    """

    icon: str
    title: str | Promise
    text: str | Promise
    name: str | Promise
    slug: str
    values: Mapping[str, Any]

    def initial(self, workspace: Workspace) -> dict[str, Any]:
        """Return the values with which the form begins, within the limits of the installation and the plan."""
        values = {"name": self.name, "slug": self.slug, **self.values}
        if settings.STREAMS_WITHOUT_LINK == "deny":
            values["unsubscribe"] = Stream.Unsubscribe.LINK
        if (hours := values.get("content_retention")) is not None:
            values["content_retention"] = min(hours, workspace.limits.retention // timedelta(hours=1))
        return values


PURPOSES = {
    "codes": Purpose(
        "password",
        _("Sign-in codes"),
        _("Before all other email, untracked, and not sent at all when it would come too late."),
        _("Sign-in codes"),
        "sign-in-codes",
        {
            "kind": Stream.Kind.TRANSACTIONAL,
            "unsubscribe": Stream.Unsubscribe.NONE,
            "priority": Stream.Priority.HIGH,
            "track_opens": False,
            "track_clicks": False,
            # Codes are usually valid for ten minutes.
            "deliver_within": 600,
            # Time enough to find out why a code did not arrive.
            "content_retention": 1,
        },
    ),
    "receipts": Purpose(
        "receipt_long",
        _("Receipts"),
        _("Orders, invoices and shipping notices: without tracking, and without a link in the footer."),
        _("Receipts"),
        "receipts",
        {
            "kind": Stream.Kind.TRANSACTIONAL,
            "unsubscribe": Stream.Unsubscribe.HEADERS,
            "priority": Stream.Priority.NORMAL,
            "track_opens": False,
            "track_clicks": False,
        },
    ),
    "notifications": Purpose(
        "notifications",
        _("Notifications"),
        _("Comments, mentions and reminders: people can unsubscribe, and they are stale after a day."),
        _("Notifications"),
        "notifications",
        {
            "kind": Stream.Kind.TRANSACTIONAL,
            "unsubscribe": Stream.Unsubscribe.LINK,
            "public": True,
            "priority": Stream.Priority.NORMAL,
            "track_opens": False,
            "track_clicks": True,
            "deliver_within": DAY,
            "content_retention": 30 * DAY // HOUR,
        },
    ),
    "newsletter": Purpose(
        "campaign",
        _("Newsletter"),
        _("Goes to many, waits for other email, is tracked, and has an unsubscribe link."),
        _("Newsletter"),
        "newsletter",
        {
            "kind": Stream.Kind.BULK,
            "unsubscribe": Stream.Unsubscribe.LINK,
            "public": True,
            "priority": Stream.Priority.LOW,
            "track_opens": True,
            "track_clicks": True,
        },
    ),
}
