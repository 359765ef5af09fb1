"""Errors of sending domains."""

from typing import ClassVar

from core.api.errors import Member, Problem


class DomainAlreadyExists(Problem):
    """The domain is already registered in this workspace.

    Use the existing domain: `GET /v1/domains` lists it.
    """

    status, code, title = 409, "domain_already_exists", "Domain already exists"
    example = "demo.example is already registered in this workspace."


class TrackingHostTaken(Problem):
    """Another workspace uses this host for its links; `host` names it.

    One host belongs to one workspace. Choose another subdomain, or remove the host there first.
    """

    status, code, title = 409, "tracking_host_taken", "Tracking host taken"
    example = "links.demo.example belongs to another workspace."
    added_members: ClassVar = {"host": Member("The name of the host.", "links.demo.example")}


class TrackingUnavailable(Problem):
    """The links of this domain cannot have this host.

    The operator has to set `TRACKING_HOST` to the public name of the service. Its own names cannot be hosts of
    links.
    """

    status, code, title = 422, "tracking_unavailable", "Tracking host unavailable"
    example = "The operator of this service has not set TRACKING_HOST to a public name, so links have no other host."


class ReceivingDomainTaken(Problem):
    """Another workspace receives the email of this domain; `domain` names it.

    One workspace receives for a name. End it there first, use a subdomain, or ask the operator to move it.
    """

    status, code, title = 409, "receiving_domain_taken", "Receiving domain taken"
    example = "The email of in.demo.example is received by another workspace."
    added_members: ClassVar = {"domain": Member("The name of the domain.", "in.demo.example")}


class ReceivingUnavailable(Problem):
    """Email cannot be received for this domain.

    The operator has to set `RECEIVING_MX`, or `EHLO_NAME`, to the public name of the mail server. Its own names cannot
    be received for.
    """

    status, code, title = 422, "receiving_unavailable", "Receiving unavailable"
    example = "The operator of this service has not set RECEIVING_MX to a public name, so domains cannot receive here."


class DomainNotRegistered(Problem):
    """The domain of `from` is not registered in this workspace; `domain` names it.

    Register exactly this domain: registering `example.com` does not allow `mail.example.com`.
    """

    status, code, title = 422, "domain_not_registered", "Domain not registered"
    example = (
        "demo.example is not registered in this workspace. "
        "Add it on the page Domains of the dashboard, or with POST /v1/domains."
    )
    added_members: ClassVar = {"domain": Member("The domain of the sender.", "demo.example")}


class DomainNotVerified(Problem):
    """The domain of `from` is registered but not verified; `domain` names it.

    Publish the records of `missingRecords`, then call `POST /v1/domains/{id}/verify`. A verified domain can send
    until its records have been missing for 72 hours.
    """

    status, code, title = 422, "domain_not_verified", "Domain not verified"
    example = "demo.example is not verified in this workspace. Publish its DNS records, then verify it."
    added_members: ClassVar = {
        "domain": Member("The domain of the sender.", "demo.example"),
        "missingRecords": Member(
            "The DNS records that were not found.",
            [
                {
                    "record": Member("The purpose of the record.", "DKIM"),
                    "type": Member("The type of the DNS record.", "TXT"),
                    "fqdn": Member("The full name of the record.", "pr-x7k2p9dm._domainkey.demo.example"),
                    "value": Member("The value to publish.", "v=DKIM1; k=rsa; p=MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8A…"),
                    "status": Member("The result of the last check of this record.", "pending"),
                }
            ],
        ),
    }
