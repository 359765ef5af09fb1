"""Advice about bounces: one sentence for each reason, and the section of the documentation that explains it."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings

from core.delivery.bounces.reasons import FailureReason
from core.delivery.receivers import Receiver
from core.lib.coded_texts import CodedText

GUIDE = "guides/bounce-causes"


@dataclass(frozen=True)
class Advice:
    """Advice about a cause of bounces.

    code: the code of the sentence (core.lib.coded_texts).
    page: a page of the documentation, with an anchor.
    """

    code: str
    page: str

    @property
    def text(self) -> CodedText:
        return CodedText(self.code)

    @property
    def docs_url(self) -> str:
        return f"{settings.PUBLIC_URL}/docs/{self.page}"


ADDRESSES = Advice("analytics.advice_addresses", f"{GUIDE}#invalid-addresses")
SUPPRESSED = Advice("analytics.advice_suppressed", f"{GUIDE}#suppressed-addresses")
NOT_ALLOWED = Advice("analytics.advice_not_allowed", f"{GUIDE}#recipients-that-are-not-allowed")
FULL = Advice("analytics.advice_full", f"{GUIDE}#full-mailboxes")
INTERNATIONAL = Advice("analytics.advice_international", f"{GUIDE}#international-addresses")
TEMPORARY = Advice("analytics.advice_temporary", f"{GUIDE}#temporary-problems")
RATE = Advice("analytics.advice_rate", f"{GUIDE}#too-much-at-once")
REPUTATION = Advice("analytics.advice_reputation", f"{GUIDE}#poor-reputation")
BLOCKLISTED = Advice("analytics.advice_blocklisted", f"{GUIDE}#listed-ip-addresses")
REVERSE_DNS = Advice("analytics.advice_reverse_dns", f"{GUIDE}#the-name-of-the-sending-server")
AUTHENTICATION = Advice("analytics.advice_authentication", f"{GUIDE}#spf-dkim-and-dmarc")
CONTENT = Advice("analytics.advice_content", f"{GUIDE}#refused-content")
POLICY = Advice("analytics.advice_policy", f"{GUIDE}#policies")
SIZE = Advice("analytics.advice_size", f"{GUIDE}#large-emails")
RECEIVER = Advice("analytics.advice_receiver", f"{GUIDE}#errors-of-the-receiving-domain")
OPERATOR = Advice("analytics.advice_operator", f"{GUIDE}#errors-of-the-service")
UNKNOWN_OUTCOME = Advice("analytics.advice_unknown_outcome", f"{GUIDE}#unknown-outcomes")
SENDING_DOMAIN = Advice("analytics.advice_sending_domain", f"{GUIDE}#a-missing-sending-domain")
OTHER = Advice("analytics.advice_other", f"{GUIDE}#other-replies")

BY_REASON: Mapping[str, Advice] = {
    FailureReason.UNKNOWN_USER: ADDRESSES,
    FailureReason.INACTIVE: ADDRESSES,
    FailureReason.BAD_DOMAIN: ADDRESSES,
    FailureReason.BAD_ADDRESS: ADDRESSES,
    FailureReason.REJECTED: ADDRESSES,
    FailureReason.MAILBOX_FULL: FULL,
    FailureReason.BAD_DOMAIN_UNCONFIRMED: ADDRESSES,
    FailureReason.SMTPUTF8_REQUIRED: INTERNATIONAL,
    FailureReason.GREYLISTED: TEMPORARY,
    FailureReason.RATE_LIMITED: RATE,
    FailureReason.TOO_MANY_RECIPIENTS: RATE,
    FailureReason.HOST_TROUBLE: TEMPORARY,
    FailureReason.REPUTATION: REPUTATION,
    FailureReason.BLOCKLISTED: BLOCKLISTED,
    FailureReason.REVERSE_DNS: REVERSE_DNS,
    FailureReason.AUTHENTICATION: AUTHENTICATION,
    FailureReason.RELAY_DENIED: RECEIVER,
    FailureReason.SPAM: CONTENT,
    FailureReason.VIRUS: CONTENT,
    FailureReason.POLICY: POLICY,
    FailureReason.TOO_LARGE: SIZE,
    FailureReason.PROTOCOL: OTHER,
    FailureReason.NETWORK: TEMPORARY,
    FailureReason.DNS: TEMPORARY,
    FailureReason.TLS: TEMPORARY,
    FailureReason.ROUTING_LOOP: RECEIVER,
    FailureReason.TARGET_REFUSED: RECEIVER,
    FailureReason.EXPIRED: TEMPORARY,
    FailureReason.LOGIN_REFUSED: OPERATOR,
    FailureReason.OUTCOME_UNKNOWN: UNKNOWN_OUTCOME,
    FailureReason.DESTINATION_FULL: TEMPORARY,
    FailureReason.DESTINATION_SHUT: TEMPORARY,
    FailureReason.DAILY_LIMIT: RATE,
    FailureReason.PROVIDER_REFUSED: OPERATOR,
    FailureReason.UNDETERMINED: OTHER,
    "recipient_suppressed": SUPPRESSED,
    "recipient_not_allowed": NOT_ALLOWED,
    "recipient_capped": NOT_ALLOWED,
    "domain_not_registered": SENDING_DOMAIN,
    "signing_key_unreadable": OPERATOR,
    "lease_lost": TEMPORARY,
    "worker_lost": UNKNOWN_OUTCOME,
    "sending_was_paused": UNKNOWN_OUTCOME,
    "internal_error": OPERATOR,
}
# A receiver shows more about these than the reply does.
ABOUT_THE_SENDER = frozenset(
    {FailureReason.REPUTATION, FailureReason.BLOCKLISTED, FailureReason.SPAM, FailureReason.RATE_LIMITED}
)
MICROSOFT = Advice("analytics.advice_microsoft", "guides/postmaster-tools#outlookcom-snds-and-jmrp")
# By the key of the receiver.
BY_RECEIVER: Mapping[str, Advice] = {
    "google": Advice("analytics.advice_google", "guides/postmaster-tools#gmail-postmaster-tools"),
    "outlook": MICROSOFT,
    "microsoft-365": MICROSOFT,
    "yahoo": Advice("analytics.advice_yahoo", "guides/postmaster-tools#yahoo-complaint-feedback-loop"),
}


def advice_for_reason(reason: str) -> Advice:
    return BY_REASON.get(reason, OTHER)


def advice_for_host(receiver: Receiver | None, top_reason: str) -> Advice:
    """Return the advice about a host. top_reason: its most frequent one."""
    if receiver and top_reason in ABOUT_THE_SENDER and (advice := BY_RECEIVER.get(receiver.key)):
        return advice
    return advice_for_reason(top_reason)
