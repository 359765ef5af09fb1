"""What a domain refuses."""

from api.errors import Problem


class DomainAlreadyExists(Problem):
    status, code, title = 409, "domain_already_exists", "Domain already exists"


class DomainNotRegistered(Problem):
    status, code, title = 422, "domain_not_registered", "Domain not registered"
