"""OpenAPI schema of `/v1/domains`."""

from core.api.fields import DeletedSerializer
from core.api.schema import Operation, response
from core.workspaces.api.schema import keyed_view
from core.workspaces.errors import PlanLimitReached
from domains.errors import (
    DomainAlreadyExists,
    ReceivingDomainTaken,
    ReceivingUnavailable,
    TrackingHostTaken,
    TrackingUnavailable,
)
from domains.serializers import DomainChanges, DomainInput, DomainSerializer

RECORD = {
    "record": "DKIM",
    "type": "TXT",
    "name": "pr-x7k2p9dm._domainkey",
    "fqdn": "pr-x7k2p9dm._domainkey.demo.example",
    "value": "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A…",
    "ttl": 3600,
    "priority": None,
    "required": True,
    "status": "pending",
    "found": None,
    "error": None,
    "note": None,
}

DOMAIN = {
    "id": "dom_0Uf7kXT4vB6nM8qWeRtYuI",
    "name": "demo.example",
    "status": "pending",
    "tls": "opportunistic",
    "openTracking": True,
    "clickTracking": True,
    "tracking": None,
    "receiving": {"enabled": False, "status": "disabled", "error": None},
    "records": [
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
    "warnings": [],
    "createdAt": "2026-11-19T14:02:11.093Z",
    "verifiedAt": None,
    "lastCheckedAt": None,
}

TRACKING_HOST = {
    "host": "links.demo.example",
    "status": "pending",
    "error": "No CNAME record found at links.demo.example.",
}

domains_schema = keyed_view(
    list=Operation(
        "listDomains",
        "List domains",
        "Returns the domains registered in this workspace, newest first.",
        response(DomainSerializer, "A page of domains.", DOMAIN),
    ),
    create=Operation(
        "createDomain",
        "Register a domain",
        "Registers a domain to send from, and creates its DKIM key. The response lists the DNS records to publish. "
        "The domain of an email's `from` must be registered exactly: registering `example.com` does not allow "
        "`mail.example.com`.",
        response(DomainSerializer, "The domain is registered.", DOMAIN, status=201),
        problems=[DomainAlreadyExists, PlanLimitReached],
        body=DomainInput,
        bodies={"A domain": {"name": "demo.example"}},
    ),
    retrieve=Operation(
        "getDomain",
        "Get a domain",
        "Returns one domain with its DNS records.",
        response(DomainSerializer, "The domain.", DOMAIN),
    ),
    partial_update=Operation(
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
    ),
    destroy=Operation(
        "deleteDomain",
        "Delete a domain",
        "Deletes the domain and its DKIM keys. If it is registered again, it gets new keys and new records to publish.",
        response(DeletedSerializer, "The domain is deleted.", {"id": DOMAIN["id"], "deleted": True}),
    ),
    verify=Operation(
        "verifyDomain",
        "Verify a domain",
        "Looks up all DNS records of the domain and returns the domain, after five seconds at the latest. If "
        "`lastCheckedAt` has not changed, the check is still running: get the domain a few seconds later. For each "
        "record, `found` is the value in DNS, `error` explains the problem and its fix, and `value` is the value to "
        "publish: an existing SPF record is kept and extended. DKIM and SPF are required. A failed DNS lookup does not "
        "change the status, and a verified domain fails only after its records have been missing for 72 hours. Domains "
        "are checked periodically, so there is no need to repeat this call. The request has no body.",
        response(DomainSerializer, "The domain with its last results.", DOMAIN),
    ),
    rotate_dkim=Operation(
        "rotateDkimKey",
        "Rotate the DKIM key",
        "Creates a new DKIM key with a new selector. Publish its record in addition to the existing one: the old key "
        "signs until the new one is found in DNS. Then keep the old record for 14 more days, for messages still in "
        "transit; it is removed from the list afterwards. If a new key is not published yet, the call changes "
        "nothing. The request has no body.",
        response(DomainSerializer, "The domain, including the new record.", DOMAIN),
    ),
)
