"""`/v1/domains/:id/dmarc`, its sources and reports, and `/v1/domains/:id/tls-reports`."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework.generics import get_object_or_404
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.errors import NotFound
from core.api.schema import ID, Operation, example, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceView, WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached
from domains.models import Domain, DomainReport
from domains.reports.advice import advise_policy
from domains.reports.api.serializers import (
    DomainDmarcSerializer,
    MailSourcesSerializer,
    ReportItemSerializer,
    ReportRangeQuery,
    ReportSerializer,
    SourceLabelInput,
    TlsSummarySerializer,
)
from domains.reports.comparison import read_comparison
from domains.reports.sources import MAX_KNOWN, name_source, read_sources
from domains.reports.tls import read_tls_summary

DOMAIN_ID = OpenApiParameter(
    "domain_id", {"type": "string", "pattern": f"^dom_{ID}$"}, OpenApiParameter.PATH, description="The domain."
)
COUNTS = {
    "sent": 9984,
    "reported": 9981,
    "aligned": 9981,
    "others": 41,
    "ours": 9930,
    "oursBroken": 0,
    "forwarded": 51,
    "known": 0,
    "unknown": 41,
}
DMARC = {
    "from": "2026-11-01T00:00:00.000Z",
    "to": "2026-12-01T00:00:00.000Z",
    "totals": COUNTS,
    "coverage": 1.0,
    "organizations": [
        {
            "id": "google",
            "name": "Google",
            **COUNTS,
            "sources": 3,
            "summary": "Google received 9,984 of your messages and reported 9,981: 100.0 % aligned; 41 others from 3 "
            "sources.",
        }
    ],
    "days": [{"date": "2026-11-20", **COUNTS}],
    "advice": {
        "policy": "none",
        "recommended": "none",
        "summary": "Keep p=none for now.",
        "requirements": [
            {
                "code": "covered",
                "met": False,
                "text": "1 organizations report, those that 42.0 % of your messages went to. Needed are 3, or 80 %.",
            }
        ],
        "notes": [],
        "record": None,
    },
}
SOURCES = {
    "data": [
        {
            "ip": "192.0.2.7",
            "whose": "known",
            "label": "Newsletter tool",
            "messages": 41,
            "aligned": 0,
            "domains": ["mail.example.net"],
            "firstOn": "2026-11-02",
            "lastOn": "2026-11-28",
        }
    ]
}
REPORT = example(
    ReportItemSerializer,
    id="rpt_0Uf7kXT4vB6nM8qWeRtYuI",
    state="read",
    organization="google.com",
    reportId="949348866075514174",
    beginAt="2026-11-19T00:00:00.000Z",
    endAt="2026-11-19T23:59:59.000Z",
    error="",
)
ROW = {
    "sourceIp": "192.0.2.25",
    "count": 412,
    "whose": "ours",
    "disposition": "none",
    "dkim": "pass",
    "spf": "pass",
    "headerFrom": "demo.example",
    "envelopeFrom": "bounce.demo.example",
    "envelopeTo": "",
    "dkimResults": [{"domain": "demo.example", "selector": "pr-x7k2p9dm", "result": "pass"}],
    "spfResults": [{"domain": "bounce.demo.example", "scope": "mfrom", "result": "pass"}],
    "reasons": [],
}
TLS = {
    "from": "2026-11-01T00:00:00.000Z",
    "to": "2026-12-01T00:00:00.000Z",
    "successful": 1204,
    "failed": 3,
    "groups": [
        {
            "id": "google",
            "name": "Google",
            "policyType": "sts",
            "successful": 1204,
            "failed": 3,
            "results": [{"type": "certificate-expired", "sessions": 3}],
        }
    ],
}


class DomainView(WorkspaceView):
    """A view below a domain."""

    @property
    def domain(self) -> Domain:
        """The domain in the path. Raises Http404 for one of another workspace."""
        domains = self.workspace.domains.select_related("workspace", "tracking_host", "receiving_domain")
        return get_object_or_404(domains, pk=self.kwargs["domain_id"])


@keyed_view()
class DmarcView(DomainView):
    action = "dmarc"

    @Operation(
        "getDmarc",
        "Get DMARC reports and advice",
        "Compares the DMARC reports about a domain with the messages that were sent from it, by mail organization and "
        "UTC day, and says whether the policy may be tightened. Reports arrive at the address that the record `DMARC` "
        "of the domain names, a day or two after the mail. Anybody may send one: they are as true as their senders.",
        response(DomainDmarcSerializer, "The reports.", DMARC),
        problems=[NotFound],
        parameters=[DOMAIN_ID, ReportRangeQuery],
    )
    def get(self, request: Request, domain_id: str) -> Response:
        domain = self.domain
        comparison = read_comparison(domain, **self.valid_query(ReportRangeQuery))
        return Response(DomainDmarcSerializer({"comparison": comparison, "advice": advise_policy(domain)}).data)


@keyed_view()
class SourcesView(DomainView):
    action = "sources"

    @Operation(
        "listDmarcSources",
        "List sources of mail",
        "Returns the addresses that sent mail of a domain, by its DMARC reports, with the class and the number of "
        "their messages. An address with messages of several classes is there several times.",
        response(MailSourcesSerializer, "The sources.", SOURCES),
        problems=[NotFound],
        parameters=[DOMAIN_ID, ReportRangeQuery],
    )
    def get(self, request: Request, domain_id: str) -> Response:
        return _sources_of(self.domain, self.valid_query(ReportRangeQuery))

    @Operation(
        "nameDmarcSource",
        "Name a source of mail",
        "Names another sender of a domain, by its address or by a domain that passes SPF or DKIM in its mail: its "
        "messages are `known` from then on, also those in stored reports. An empty `label` makes them `unknown` again. "
        f"A domain can have up to {MAX_KNOWN} labels. Returns the sources of the last 30 days.",
        response(MailSourcesSerializer, "The sources.", SOURCES),
        problems=[NotFound, PlanLimitReached],
        parameters=[DOMAIN_ID],
        body=SourceLabelInput,
        bodies={
            "An address": {"ip": "192.0.2.7", "label": "Newsletter tool"},
            "A domain": {"domain": "mail.example.net", "label": "Newsletter tool"},
        },
    )
    def patch(self, request: Request, domain_id: str) -> Response:
        domain, named = self.domain, self.valid(SourceLabelInput)
        name_source(domain, ip=named.get("ip"), name=named.get("domain", ""), label=named["label"])
        return _sources_of(domain, ReportRangeQuery().run_validation({}))


def _sources_of(domain: Domain, days: dict[str, Any]) -> Response:
    return Response(MailSourcesSerializer({"data": read_sources(domain, **days)}).data)


@keyed_view(
    list=Operation(
        "listDmarcReports",
        "List DMARC reports",
        "Returns the DMARC reports about a domain that arrived, newest first, also those that are not counted.",
        response(ReportItemSerializer, "A page of reports.", REPORT),
        problems=[NotFound],
        parameters=[DOMAIN_ID],
    ),
    retrieve=Operation(
        "getDmarcReport",
        "Get a DMARC report",
        "Returns one report with its policy and its rows.",
        response(
            ReportSerializer,
            "The report.",
            {**REPORT, "policy": {"domain": "demo.example", "p": "none"}, "rowCount": 1, "rows": [ROW]},
        ),
        parameters=[DOMAIN_ID],
    ),
)
class DmarcReportViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[DomainReport]):
    queryset = DomainReport.objects.all()

    def get_queryset(self) -> QuerySet[DomainReport]:
        domain = get_object_or_404(self.workspace.domains, pk=self.kwargs["domain_id"])
        return domain.reports.filter(kind=DomainReport.AggregateKind.DMARC).defer("source")

    def get_serializer_class(self) -> type[ReportItemSerializer]:
        return ReportItemSerializer if self.action == "list" else ReportSerializer


@keyed_view()
class TlsReportsView(DomainView):
    action = "tls_reports"

    @Operation(
        "getTlsReports",
        "Get TLS reports",
        "Returns the sums of the TLS reports (RFC 8460) about the mail hosts of a domain, by organization, type of "
        "policy and result. Reports arrive at the address that the record `TLSReports` of the domain names.",
        response(TlsSummarySerializer, "The sums.", TLS),
        problems=[NotFound],
        parameters=[DOMAIN_ID, ReportRangeQuery],
    )
    def get(self, request: Request, domain_id: str) -> Response:
        summary = read_tls_summary(self.domain, **self.valid_query(ReportRangeQuery))
        return Response(TlsSummarySerializer(summary).data)
