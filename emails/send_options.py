"""Send options: the fields of an email that are the same in its request, its row and its send job.

See docs/decisions/0153.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from streams.models import MAIN

# Options that the sending domain can switch off for requests without them.
DOMAIN_SETTINGS = {"track_opens": "open_tracking", "track_clicks": "click_tracking"}
# The options of a sensitive email, whatever the request says: the URL of a tracked link is part of the content, and the
# event of a click shows it (docs/decisions/0352).
OPTIONS_OF_SENSITIVE = {"sensitive": True, "track_clicks": False}


@dataclass(frozen=True, kw_only=True)
class SendOptions:
    """A field declared here is accepted, stored under its name, and loaded for sending."""

    tags: Sequence[str] = ()
    headers: dict[str, str] = field(default_factory=dict)
    # None as the stream has it, until the email is accepted.
    track_opens: bool | None = None
    track_clicks: bool | None = None
    stream: str = MAIN
    # The language that the request asks for.
    locale: str | None = None
    # Nobody reads the content (docs/decisions/0352). Also true for a sensitive stream or template, once accepted.
    sensitive: bool = False
    # A TlsOption; with `required`, it is sent only over verified TLS (docs/decisions/0396).
    tls: str | None = None
