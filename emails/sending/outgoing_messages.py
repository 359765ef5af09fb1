"""Outgoing messages: one per recipient, with the recipient's links, tracking pixel and footer."""

import functools
from collections.abc import Callable
from dataclasses import replace
from html import escape

from django.conf import settings

from core.delivery.message.compose import LARGE_TEXT, OutgoingMessage
from core.delivery.message.footer import (
    MAX_UNSUBSCRIBE_LINKS,
    UNSUBSCRIBE_PLACEHOLDER,
    html_footer,
    text_footer,
)
from core.delivery.message.html import fill, find_slots
from core.delivery.message.text import html_to_text
from core.delivery.message.unsubscribe_places import has_link, read_html, with_plain_places
from core.delivery.recipients import RECIPIENT_HEADER
from core.lib.email_addresses import Address
from core.lib.ids import to_uuid
from domains.signing_identities import SigningIdentity
from emails.errors import ContentNotKept
from emails.links import click_url, open_url, unsubscribe_url
from emails.models import Recipient, TlsOption, message_id
from emails.rendered_content import render_stored
from emails.sending.jobs import MEMORY_BYTES, SendJob, load_jobs
from emails.sending.queue import EmailClaim
from emails.sending.reply_address import reply_address
from emails.sending.return_path import return_path
from streams.models import MAIN, Stream
from templates_app.content import RenderedContent
from templates_app.models import TemplateVersion

# The last field of Feedback-ID, by which mailbox providers group feedback.
SENDER_ID = "postrider"
# Headers of an email that a redirected message does not have; the reader's program would act on them.
REPLACED_HEADERS = frozenset({RECIPIENT_HEADER.lower(), "list-unsubscribe", "list-unsubscribe-post"})
UNSIGNED = SigningIdentity(key=None, return_path_domain="", requires_tls=False)


class NoSigningKey(Exception):
    """Raised for a message whose domain has no DKIM key that this process can decrypt."""


def build_message(job: SendJob) -> OutgoingMessage:
    """Build the outgoing message of a send job. Raises NoSigningKey: nothing is sent unsigned."""
    if job.identity is None or job.identity.key is None:
        raise NoSigningKey(f"no key for {job.from_domain}")
    return _message(job, job.identity)


def rebuild_message(recipient: Recipient) -> bytes:
    """Return the message of a recipient from the stored rows: the bytes that are or were sent.

    Without a signature if the domain was deleted, and with another one if its key was rotated since.
    Raises ContentNotKept.
    """
    if not recipient.email.keeps_content:
        raise ContentNotKept
    claim = EmailClaim(
        to_uuid(recipient.id), 0, 1, to_uuid(recipient.email.workspace_id, prefix="ws_"), recipient.email.created_at, 0
    )
    (job,) = load_jobs([claim], memory_bytes=MEMORY_BYTES)
    return _message(job, job.identity or UNSIGNED).to_bytes()


def _message(job: SendJob, identity: SigningIdentity) -> OutgoingMessage:
    if job.is_redirected:
        job = _redirected(job)
    content = render_stored(
        job.content,
        job.version,
        subject=job.subject,
        template_data=job.template_data,
        parts=job.parts,
        locale=job.locale,
    )
    return OutgoingMessage(
        return_path=return_path(job.claim.key, domain=identity.return_path_domain),
        recipient=job.redirect_to or job.address,
        message_id=message_id(job.key, domain=job.from_domain),
        date=job.date,
        sender=job.sender,
        to=job.to,
        cc=job.cc,
        reply_to=_reply_to(job),
        subject=content.subject,
        html=_personalized_html(job, content),
        text=_personalized_text(job, content),
        headers=tuple(job.headers.items()),
        files=job.files,
        unsubscribe_url=None if job.unsubscribe == Stream.Unsubscribe.NONE else _unsubscribe_url(job),
        list_id=_list_id(job),
        feedback_id=_feedback_id(job),
        key=identity.key,
        requires_tls=identity.requires_tls or job.tls == TlsOption.REQUIRED,
        asks_for_requiretls=job.tls == TlsOption.REQUIRED,
        attempt=job.claim.attempt,
        last_reason=job.last_reason,
        last_reply_age=job.last_reply_age,
        tags=tuple(job.tags),
        metadata=job.metadata,
        is_test=job.is_test,
        route=job.route,
        transport=job.claim.handed_to or job.transport,
        is_pinned=bool(job.claim.handed_to),
        released_for=job.claim.pair or 0,
        has_waited=job.claim.has_waited,
        stream=f"{job.claim.workspace_id} {job.stream}",
        diversion=job.diversion,
    )


def _reply_to(job: SendJob) -> tuple[Address, ...]:
    """Return the addresses of Reply-To; with reply tracking, that of this recipient's answers."""
    if not job.reply_domain:
        return job.reply_to
    return (Address(job.sender.name, reply_address(job.claim.key, domain=job.reply_domain)),)


def _redirected(job: SendJob) -> SendJob:
    """Return a job whose message names its recipient, and has nothing by which its reader could affect the recipient.

    See also SendJob.unsubscribe.
    """
    kept = {name: value for name, value in job.headers.items() if name.lower() not in REPLACED_HEADERS}
    headers = {RECIPIENT_HEADER: job.address, **kept}
    return replace(job, headers=headers, track_opens=False, track_clicks=False, reply_domain=None)


def is_large(job: SendJob) -> bool:
    """Return whether building the message may take more than 5 ms."""
    if job.version is None:
        return job.content is not None and len(job.content.html) + len(job.content.text) > LARGE_TEXT
    versions = [job.version, *(job.parts.versions or {}).values()] if job.parts else [job.version]
    sizes = [_version_size(version) for version in versions]
    values = sum(count for _, count in sizes)
    return sum(length for length, _ in sizes) + values * len(job.template_data or "") > LARGE_TEXT


# Versions are equal if their ids are.
@functools.lru_cache(maxsize=256)
def _version_size(version: TemplateVersion) -> tuple[int, int]:
    """Return the length of a version and the number of its values, of which each may be all of the data."""
    texts = [(version.html, version.text)]
    texts += [(one.get("html", version.html), one.get("text", version.text)) for one in version.locales.values()]
    sources = ["".join(pair) for pair in texts]
    # A loop may repeat anything.
    lengths = [LARGE_TEXT + 1 if "#each" in source else len(source) for source in sources]
    return max(lengths), max(source.count("{{") for source in sources)


def _personalized_html(job: SendJob, content: RenderedContent) -> str:
    """Return the HTML, if any, with the recipient's links and tracking pixel, and a footer unless it has the link."""
    if not content.html:
        return ""
    html, is_linked = read_html(content.html)
    filled = fill(
        find_slots(html),
        link=functools.partial(_click_url, job) if job.track_clicks else None,
        pixel_url=open_url(job.key, base_url=_base_url(job)) if job.track_opens else None,
        footer="" if is_linked else _footer(job, html_footer),
    )
    return _linked(job, filled, escape)


def _personalized_text(job: SendJob, content: RenderedContent) -> str:
    """Return the text with the unsubscribe link in its places, or in a footer."""
    text = with_plain_places(content.text) or html_to_text(read_html(content.html)[0])
    return _linked(job, text) + ("" if has_link(text) else _footer(job, text_footer))


def _linked(job: SendJob, text: str, spell: Callable[[str], str] = str) -> str:
    """Return a text with the unsubscribe link in its places; in a redirected message, PUBLIC_URL.

    spell: returns the link as the text has it.
    """
    if UNSUBSCRIBE_PLACEHOLDER not in text:
        return text
    url = settings.PUBLIC_URL if job.is_redirected else _unsubscribe_url(job)
    return text.replace(UNSUBSCRIBE_PLACEHOLDER, spell(url), MAX_UNSUBSCRIBE_LINKS)


def _click_url(job: SendJob, target: str) -> str:
    return click_url(job.key, workspace_id=job.claim.workspace_id, target=target, base_url=_base_url(job))


def _unsubscribe_url(job: SendJob) -> str:
    workspace_id, base_url = job.claim.workspace_id, _base_url(job)
    return unsubscribe_url(
        job.key, workspace_id=workspace_id, address=job.address, stream=job.stream, base_url=base_url
    )


def _base_url(job: SendJob) -> str:
    """Return the start of all links in a message."""
    return job.identity.links_url if job.identity else ""


def _footer(job: SendJob, render: Callable[..., str]) -> str:
    """Return the footer with the unsubscribe link, if the stream has it."""
    if job.unsubscribe != Stream.Unsubscribe.LINK:
        return ""
    named = job.properties and not job.properties.is_main
    stream = job.properties.name if job.properties and named else ""
    return render(_unsubscribe_url(job), stream=stream, locale=job.locale_used)


def _list_id(job: SendJob) -> str | None:
    """Return the identifier of a bulk stream (RFC 2919), by which mail programs sort."""
    if job.properties is None or job.properties.kind != Stream.Kind.BULK:
        return None
    return f"{job.stream}.{job.claim.workspace_id}.{job.from_domain}"


def _feedback_id(job: SendJob) -> str:
    stream = "transactional" if job.stream == MAIN else job.stream
    return f"{job.template_id or 'none'}:{job.claim.workspace_id}:{stream}:{SENDER_ID}"
