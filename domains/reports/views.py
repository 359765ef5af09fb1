"""TLS reports by HTTPS (RFC 8460, section 5.3): anyone may send them, and no reply says more than its status."""

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from core.lib.network.client_address import client_address, client_network
from core.lib.token_bucket import RateLimit, take_token
from domains.models import DomainReport
from domains.reports.addresses import ReportAddress, read_token
from domains.reports.storing import Admission, store_report

MAX_BYTES = 1024 * 1024
CONTENT_TYPES = frozenset({"application/tlsrpt+json", "application/tlsrpt+gzip"})
HOURLY = RateLimit(per_second=60 / 3600, burst=60)
STATUSES = {Admission.ACCEPTED: 201, Admission.UNKNOWN: 404, Admission.LIMITED: 429}


# The token is that of a domain; there is no session.
@csrf_exempt
@require_POST
def receive_tls_report(request: HttpRequest, token: str) -> HttpResponse:
    """Store a report, which is read later."""
    return HttpResponse(status=_store(request, token))


def _store(request: HttpRequest, token: str) -> int:
    """Store a report; return the status of the reply."""
    peer = client_address(request.META)
    network = client_network(peer) if peer else "unknown"
    if not take_token(f"tls-reports:from:{network}", limit=HOURLY).is_allowed:
        return 429
    domain_id = read_token(token)
    if domain_id is None:
        return 404
    if request.content_type not in CONTENT_TYPES:
        return 415
    body = request.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        return 413
    return STATUSES[store_report(ReportAddress(domain_id, DomainReport.AggregateKind.TLS), body, peer=str(peer or ""))]
