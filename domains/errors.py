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
