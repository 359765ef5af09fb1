"""Recipients of reports: return paths, the role accounts postmaster and abuse, and the addresses of canaries.

And those of reports about domains, which are stored apart (domains.reports).
"""

from django.conf import settings

from core.delivery.bounces.replies import safe_text
from core.lib.tokens import InvalidToken
from core.lib.worker.failpoints import failpoint
from domains.models import Domain
from domains.reports.addresses import ReportAddress, read_report_address
from domains.reports.reading.documents import MAX_BYTES as DOMAIN_REPORT_BYTES
from domains.reports.storing import Admission, admit_report
from domains.reports.storing import store_report as store_domain_report
from emails.models import Recipient
from emails.sending.return_path import read_return_path
from interfaces.inbound.canary import is_canary_address, keep_canary
from interfaces.inbound.models import MailReport
from interfaces.inbound.role_accounts import ROLE_ACCOUNTS, WITH_PROOF, is_acceptable, is_within
from interfaces.inbound.sessions import REPORT_BYTES, InboundEnvelope

BOUNCE_PREFIX = "bounce."
ACCEPTED = "250 2.1.5 OK"
STORED = "250 2.6.0 Stored"
NO_SUCH_ADDRESS = "550 5.1.1 No such address"
DAILY_LIMIT_REACHED = "452 4.3.1 Daily message limit reached"


ADMISSIONS = {
    Admission.ACCEPTED: ACCEPTED,
    Admission.UNKNOWN: NO_SUCH_ADDRESS,
    Admission.LIMITED: DAILY_LIMIT_REACHED,
}


def report_reply(address: str, *, peer: str) -> str:
    """Return the reply to RCPT of a return path, of canaries, or for reports about a domain.

    NO_SUCH_ADDRESS for any other address. peer: the IP address of the client.
    """
    if is_canary_address(address):
        return ACCEPTED
    if about := read_report_address(address):
        return ADMISSIONS[admit_report(about, peer=peer)]
    local, _, domain = address.lower().partition("@")
    if not address.isascii():
        return NO_SUCH_ADDRESS
    try:
        recipient_id = read_return_path(local)
    except InvalidToken:
        return NO_SUCH_ADDRESS
    return ACCEPTED if _is_return_path_domain(domain) or _is_bounce_domain_of(recipient_id, domain) else NO_SUCH_ADDRESS


def role_account_reply(address: str, *, peer: str) -> str:
    """Return the reply to RCPT of postmaster or abuse, or NO_SUCH_ADDRESS. peer: the IP address of the client."""
    local, _, domain = address.lower().partition("@")
    if not address.isascii() or local not in ROLE_ACCOUNTS:
        return NO_SUCH_ADDRESS
    return _role_account_reply(domain, peer)


def max_report_bytes(address: str) -> int:
    """Return the size of the largest message to an address of reports."""
    return DOMAIN_REPORT_BYTES if read_report_address(address) else REPORT_BYTES


def store_report(envelope: InboundEnvelope, source: bytes, *, peer: str) -> str:
    """Store a message; return the SMTP reply to its final dot."""
    if about := read_report_address(envelope.rcpt_tos[0]):
        return _store_domain_report(about, source, peer=peer, sender=envelope.mail_from or "")
    if is_canary_address(envelope.rcpt_tos[0]):
        return keep_canary(source)
    local = envelope.rcpt_tos[0].lower().partition("@")[0]
    report = MailReport(
        recipient_id=None if local in ROLE_ACCOUNTS else read_return_path(local),  # type: ignore[misc]  # IdField is a str's
        sender=safe_text(envelope.mail_from or "").strip("<>")[:320],
        peer=peer,
        source=source,
    )
    if local in ROLE_ACCOUNTS and not is_acceptable(report):
        return DAILY_LIMIT_REACHED
    failpoint("inbound.before_store")
    report.save(force_insert=True)
    failpoint("inbound.after_store")
    return STORED


def _store_domain_report(about: ReportAddress, source: bytes, *, peer: str, sender: str) -> str:
    admission = store_domain_report(about, source, peer=peer, sender=sender.strip("<>"))
    return STORED if admission is Admission.ACCEPTED else ADMISSIONS[admission]


def _role_account_reply(domain: str, peer: str) -> str:
    is_known = (
        not domain
        or _is_return_path_domain(domain)
        or Domain.objects.filter(name=domain.removeprefix(BOUNCE_PREFIX)).exists()
    )
    if not is_known:
        return NO_SUCH_ADDRESS
    # Most messages are decided by their content (store_report).
    return ACCEPTED if is_within(WITH_PROOF, peer=peer) else DAILY_LIMIT_REACHED


def _is_return_path_domain(domain: str) -> bool:
    return domain == settings.RETURN_PATH_DOMAIN.lower()


def _is_bounce_domain_of(recipient_id: str, domain: str) -> bool:
    """Check that a domain is bounce.<From domain of the recipient's email>."""
    recipients = Recipient.objects.filter(id=recipient_id, email__from_domain=domain.removeprefix(BOUNCE_PREFIX))
    return domain.startswith(BOUNCE_PREFIX) and recipients.exists()
