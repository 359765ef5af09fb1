"""Storing of messages in the built-in inbox."""

import logging
from collections.abc import Iterable
from uuid import UUID

from django.db import Error, connection

from core.delivery.recipients import RECIPIENT_HEADER
from core.lib.ids import is_id, new_uuid, to_uuid
from core.lib.sql import run_prepared
from core.lib.worker.database_outage import database_outage
from interfaces.inbound.inbox.reading import read_header, read_headers

log = logging.getLogger("postrider.inbox")

# One statement, since the delivery waits for it.
STORE = """
INSERT INTO inbox_caughtmail (id, workspace_id, email_id, envelope_from, recipient, sender, subject, is_captured,
                              keeps_content, source)
SELECT given.id, e.workspace_id, e.id, %(envelope_from)s, given.address, %(sender)s, %(subject)s, %(is_captured)s,
       e.sensitive IS NOT TRUE, CASE WHEN e.sensitive THEN %(header)s ELSE %(source)s END
  FROM unnest(%(ids)s::uuid[], %(addresses)s::text[]) AS given (id, address)
  LEFT JOIN emails_recipient r ON r.id = %(recipient)s
                              AND upper(r.address) IN (upper(given.address), upper(%(named)s::text))
  LEFT JOIN emails_email e ON e.id = r.email_id
"""


def capture_mail(source: bytes, envelope_from: str, recipient: str) -> bool:
    """Store a message in place of its delivery to the recipient; return False if the database does not answer."""
    return store_message(source, envelope_from, [recipient], is_captured=True)


def store_message(source: bytes, envelope_from: str, recipients: list[str], *, is_captured: bool = False) -> bool:
    """Store a message, one row for each recipient; return False if the database does not answer.

    is_captured: it was not addressed to the inbox.
    """
    headers = _first_headers(read_headers(source))
    values = {
        "ids": [new_uuid() for _ in recipients],
        "addresses": recipients,
        "recipient": _recipient_id(headers.get("message-id", "")),
        # In a redirected message, the recipient in whose place it came here.
        "named": headers.get(RECIPIENT_HEADER.lower()),
        "envelope_from": envelope_from,
        "sender": headers.get("from", ""),
        "subject": headers.get("subject", ""),
        "is_captured": is_captured,
        "header": read_header(source),
        "source": source,
    }
    try:
        run_prepared(STORE, values)
    except Error:
        log.exception("a message could not be stored")
        connection.close()
        return False
    database_outage.record_success()
    return True


def _first_headers(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in reversed(tuple(headers))}


def _recipient_id(message_id: str) -> UUID | None:
    """Return the recipient's id, with which the Message-ID of a message from this service begins."""
    text = message_id.strip("<> ").partition("@")[0]
    return to_uuid(text) if is_id(text) else None
