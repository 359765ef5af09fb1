"""Emails to the owners of a workspace about what DMARC reports say about a domain (docs/decisions/0398)."""

from django.utils.translation import gettext_lazy as _

from console.system_mail.workspace_emails import notify_owners
from core.lib.coded_texts import CodedText
from domains.models import Domain
from events.kinds import EventKind

AUTH_FAILING = _("""Email of {domain} in the workspace "{workspace}" fails DMARC:

{summary}

Check the DNS records of the domain in the dashboard, and whether a relay changes messages after they are signed. You
get at most one email a week about this.

{url}
""")
SPOOFED = _("""Others send email in the name of {domain}, a domain of the workspace "{workspace}":

{summary}

If it is a service of yours, name it on the page DMARC reports of the domain. Otherwise a stricter DMARC policy stops
such email; that page says whether you may have one. You get at most one email a week about this.

{url}
""")
REPLAY = _("""More signed email of {domain}, a domain of the workspace "{workspace}", was reported than was sent:

{summary}

Somebody may send copies of one signed email to many addresses, or a forwarder passes on much of it. Look for an account
that sends spam to itself, and rotate the DKIM key of the domain to end the copies. You get at most one email a week
about this.

{url}
""")
NOTICES = {
    EventKind.DOMAIN_AUTH_FAILING: (_("Email of {domain} fails DMARC"), AUTH_FAILING),
    EventKind.DOMAIN_SPOOFED: (_("Others send email in the name of {domain}"), SPOOFED),
    EventKind.DOMAIN_REPLAY: (_("Copies of email of {domain}"), REPLAY),
}


def notify_of_domain(domain: Domain, *, kind: EventKind, summary: CodedText) -> None:
    """Queue an email to each owner of the domain's workspace."""
    subject, text = NOTICES[kind]
    notify_owners(domain.workspace, subject=subject, text=text, summary=summary, domain=domain.name)
