"""The tracking host that a check expects, for web processes, which check none (domains.record_checks.tracking_host)."""

from dataclasses import dataclass

PROOF_PATH = "/.well-known/postrider"


@dataclass(frozen=True)
class ExpectedHost:
    """A tracking host, the name that it is a CNAME for, and the authority that issues certificates of this service.

    url: where one of the proofs is expected.
    domain, organizational_domain: those of RecordLookup.
    """

    id: str
    name: str
    domain: str
    organizational_domain: str
    target: str
    authority: str
    url: str
    proofs: frozenset[str]
    allow_private: bool
