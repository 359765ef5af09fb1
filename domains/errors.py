"""What a domain refuses."""

from api.errors import Problem


class DomainAlreadyExists(Problem):
    """The domain is registered in this workspace already.

    Find it in the list of domains.
    """

    status, code, title = 409, "domain_already_exists", "Domain already exists"


class DomainNotRegistered(Problem):
    """The domain of `from` is not registered in this workspace; `domain` names it.

    Register exactly this domain: registering `example.com` does not allow `mail.example.com`.
    """

    status, code, title = 422, "domain_not_registered", "Domain not registered"


class DomainNotVerified(Problem):
    """The domain of `from` is registered, but its DNS does not prove yet that it is yours; `domain` names it.

    Publish the records of `missingRecords`, then call `POST /v1/domains/{id}/verify`. A domain that was verified
    goes on sending while the DNS is out of order for less than 72 hours.
    """

    status, code, title = 422, "domain_not_verified", "Domain not verified"
