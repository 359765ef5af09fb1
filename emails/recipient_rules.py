"""Recipient rules as emails apply them: nobody but the recipients they allow gets a message (docs/decisions/0388)."""

from django.conf import settings

from core.delivery.recipients import Diversion
from core.delivery.transports.simulator import is_simulated
from core.workspaces.recipients.rules import AppliedRules, Otherwise, RecipientRules, Treatment

DIVERSIONS = {Otherwise.CAPTURE: Diversion.CAPTURED, Otherwise.REDIRECT: Diversion.REDIRECTED}


def applied_rules(*, workspace: RecipientRules | None, key: RecipientRules | None) -> AppliedRules:
    """Return the rules of a workspace and a key, and those of the file that RECIPIENTS names."""
    return AppliedRules(workspace, key, settings.RECIPIENTS.rules)


def treat_address(rules: AppliedRules, address: str, *, is_test: bool) -> Treatment | None:
    """Return what the rules do with a recipient; None if the message goes to the address.

    A simulated recipient, or one of a test email, gets no message from any installation, and no rule applies.
    """
    return rules.treat(address) if rules and leaves_to(address, is_test=is_test) else None


def leaves_to(address: str, *, is_test: bool) -> bool:
    """Return whether a message to the address would leave the installation, apart from rules."""
    return not is_test and not is_simulated(address, domain=settings.SIMULATOR_DOMAIN)


def is_refused(treatment: Treatment | None) -> bool:
    return treatment is not None and treatment.otherwise is Otherwise.REFUSE
