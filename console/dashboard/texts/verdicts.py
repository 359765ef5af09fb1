"""Verdicts about the origin of a received message, in words."""

from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from receiving.models import Message

# Result of DMARC, or without a policy of SPF and DKIM → explanation of a message whose origin is not proven.
UNPROVEN: dict[str, str | Promise] = {
    "temperror": gettext_lazy("The DNS did not answer when the message was checked."),
    "permerror": gettext_lazy("The records of %(domain)s in the DNS are invalid."),
    "none": gettext_lazy("The message has no signature, and %(domain)s names no servers that send for it."),
}
MET = gettext_lazy("The DMARC policy of %(domain)s is met.")
ALIGNED = gettext_lazy("A valid signature or the sending server belongs to %(domain)s.")
UNALIGNED = gettext_lazy("Neither a signature nor the sending server belongs to %(domain)s.")
# Policy of DMARC → explanation of a message that does not meet it.
FAILED: dict[str, str | Promise] = {
    "none": gettext_lazy("Neither a valid signature nor the sending server belongs to %(domain)s."),
    "quarantine": gettext_lazy("%(domain)s asks receivers to take such messages for spam. It may be forged."),
    "reject": gettext_lazy("%(domain)s asks receivers to refuse such messages. It may be forged."),
}


@dataclass(frozen=True)
class Origin:
    """Whether a message really comes from the domain in From. tone, icon: those of its notice."""

    title: str
    explanation: str
    tone: str
    icon: str


@dataclass(frozen=True)
class OriginCheck:
    """One of the checks.

    name: the standard.
    about: the domain, with the selector or the policy.
    """

    name: str
    result: str
    about: str


def describe_origin(message: Message) -> Origin:
    """Return the verdict about a message: proven, not proven, or not checked."""
    found = message.authentication
    if found is None:
        return Origin(_("Not checked"), _("The origin of a message is checked when it is read."), "neutral", "pending")
    domain, policy = found["dmarc"]["domain"], found["dmarc"]["policy"]
    if not domain:
        return _unproven(_("Not proven"), _("The message has no sender in From, or several."))
    values = {"domain": domain}
    if found["result"] == "pass":
        title = _("Really from %(domain)s") % values
        text = MET if policy else ALIGNED
        return Origin(title, str(text) % values, "success", "verified_user")
    return _unproven(_("Not proven to be from %(domain)s") % values, str(_reason(found["result"], policy)) % values)


def list_checks(message: Message) -> list[OriginCheck]:
    """Return the checks behind the verdict; none before it."""
    found: dict[str, Any] = message.authentication or {}
    if not found:
        return []
    dmarc = found["dmarc"]
    return [
        OriginCheck("SPF", found["spf"]["result"], found["spf"]["domain"]),
        *(OriginCheck("DKIM", one["result"], f"{one['domain']} · {one['selector']}") for one in found["dkim"]),
        OriginCheck("DMARC", dmarc["result"], f"{dmarc['domain']} · p={dmarc['policy']}" if dmarc["policy"] else ""),
        OriginCheck("ARC", found["arc"]["result"], ""),
    ]


def _unproven(title: str, explanation: str) -> Origin:
    return Origin(title, explanation, "warning", "help")


def _reason(result: str, policy: str | None) -> str | Promise:
    if result in UNPROVEN:
        return UNPROVEN[result]
    return FAILED.get(policy or "", UNALIGNED)
