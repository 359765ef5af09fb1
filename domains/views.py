"""`/v1/domains`: register, list, retrieve, change, verify, rotate the DKIM key, delete."""

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.fields import DeletedSerializer
from core.api.schema import Operation, example, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.api.viewsets import WorkspaceViewSet
from core.workspaces.errors import PlanLimitReached
from domains.check_queue.verify import verify_domain
from domains.errors import (
    DomainAlreadyExists,
    ReceivingDomainTaken,
    ReceivingUnavailable,
    TrackingHostTaken,
    TrackingUnavailable,
)
from domains.models import Domain
from domains.serializers import DomainChanges, DomainInput, DomainSerializer, RecordSerializer
from domains.services import change_domain, delete_domain, register_domain, rotate_dkim_key

RECORD = example(
    RecordSerializer,
    record="DKIM",
    type="TXT",
    name="pr-x7k2p9dm._domainkey",
    fqdn="pr-x7k2p9dm._domainkey.demo.example",
    value="v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A…",
    ttl=3600,
    required=True,
    status="pending",
)
DOMAIN = example(
    DomainSerializer,
    id="dom_0Uf7kXT4vB6nM8qWeRtYuI",
    name="demo.example",
    tls="opportunistic",
    openTracking=True,
    clickTracking=True,
    tracking=None,
    receiving={"enabled": False, "status": "disabled", "error": None},
    records=[
        RECORD,
        {
            **RECORD,
            "record": "SPF",
            "name": "@",
            "fqdn": "demo.example",
            "value": "v=spf1 include:_spf.example.com ~all",
            "status": "failed",
            "found": "v=spf1 mx ~all",
            "error": "include:_spf.example.com is missing or has no effect in its position. Replace the record with "
            "the one shown here. It will use 3 of the 10 DNS lookups.",
        },
    ],
    warnings=[],
    createdAt="2026-11-19T14:02:11.093Z",
)
TRACKING_HOST = {
    "host": "links.demo.example",
    "status": "pending",
    "error": "No CNAME record found at links.demo.example.",
}


@keyed_view(
    list=Operation(
        "listDomains",
        "List domains",
        "Returns the domains registered in this workspace, newest first.",
        response(DomainSerializer, "A page of domains.", DOMAIN),
    ),
    retrieve=Operation(
        "getDomain",
        "Get a domain",
        "Returns one domain with its DNS records.",
        response(DomainSerializer, "The domain.", DOMAIN),
    ),
)
class DomainViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet[Domain]):
    queryset = Domain.objects.select_related("tracking_host", "receiving_domain").prefetch_related("dkim_keys")
    serializer_class = DomainSerializer
    sending_actions = frozenset({"list", "retrieve"})

    @Operation(
        "createDomain",
        "Register a domain",
        "Registers a domain to send from, and creates its DKIM key. The response lists the DNS records to publish. "
        "The domain of an email's `from` must be registered exactly: registering `example.com` does not allow "
        "`mail.example.com`.",
        response(DomainSerializer, "The domain is registered.", DOMAIN, status=201),
        problems=[DomainAlreadyExists, PlanLimitReached],
        body=DomainInput,
        bodies={"A domain": {"name": "demo.example"}},
    )
    def create(self, request: Request) -> Response:
        domain = register_domain(self.workspace, name=self.valid(DomainInput)["name"])
        return Response(DomainSerializer(domain).data, status=status.HTTP_201_CREATED)

    @Operation(
        "updateDomain",
        "Change a domain",
        "Changes the settings of a domain; fields that are left out stay as they are. With `tls` `required`, a message "
        "is sent only over TLS 1.2 or newer, "
        "to a host with a certificate valid for its name; otherwise it is deferred with the reason `tls` and fails in "
        "the end. It applies to the connection to the mail host or relay, not to providers. `tracking` gives the links "
        "in emails a host of the domain: publish the record `Tracking`, which `records` then has, and the host becomes "
        "`active` when the service answers there over https. One host belongs to one workspace. Emails claimed after "
        "the change follow it; links in earlier emails work for 30 more days after a host is removed. With "
        "`receiving`, email to addresses of the domain is received once the record `Receiving` and the DKIM record are "
        "found.",
        response(DomainSerializer, "The changed domain.", {**DOMAIN, "tls": "required", "tracking": TRACKING_HOST}),
        problems=[TrackingHostTaken, TrackingUnavailable, ReceivingDomainTaken, ReceivingUnavailable],
        body=DomainChanges,
        bodies={
            "Require TLS": {"tls": "required"},
            "A host for links": {"tracking": {"subdomain": "links"}},
            "Receive email": {"receiving": True},
            "No tracking": {"openTracking": False, "clickTracking": False},
        },
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        change_domain(self.get_object(), self.valid(DomainChanges))
        return self.retrieve(request, pk)

    @Operation(
        "deleteDomain",
        "Delete a domain",
        "Deletes the domain and its DKIM keys. If it is registered again, it gets new keys and new records to publish.",
        response(DeletedSerializer, "The domain is deleted.", example(DeletedSerializer, id=DOMAIN["id"])),
    )
    def destroy(self, request: Request, pk: str) -> Response:
        domain = self.get_object()
        delete_domain(domain)
        return Response(DeletedSerializer({"id": pk}).data)

    @Operation(
        "verifyDomain",
        "Verify a domain",
        "Looks up all DNS records of the domain and returns the domain, after five seconds at the latest. If "
        "`lastCheckedAt` has not changed, the check is still running: get the domain a few seconds later. For each "
        "record, `found` is the value in DNS, `error` explains the problem and its fix, and `value` is the value to "
        "publish: an existing SPF record is kept and extended. DKIM and SPF are required. A failed DNS lookup does not "
        "change the status, and a verified domain fails only after its records have been missing for 72 hours. Domains "
        "are checked periodically, so there is no need to repeat this call. The request has no body.",
        response(DomainSerializer, "The domain with its last results.", DOMAIN),
    )
    @action(detail=True, methods=["post"])
    def verify(self, request: Request, pk: str) -> Response:
        verify_domain(self.get_object())
        return self.retrieve(request, pk)

    @Operation(
        "rotateDkimKey",
        "Rotate the DKIM key",
        "Creates a new DKIM key with a new selector. Publish its record in addition to the existing one: the old key "
        "signs until the new one is found in DNS. Then keep the old record for 14 more days, for messages still in "
        "transit; it is removed from the list afterwards. If a new key is not published yet, the call changes "
        "nothing. The request has no body.",
        response(DomainSerializer, "The domain, including the new record.", DOMAIN),
    )
    @action(detail=True, methods=["post"], url_path="rotate-dkim")
    def rotate_dkim(self, request: Request, pk: str) -> Response:
        rotate_dkim_key(self.get_object())
        return self.retrieve(request, pk)
