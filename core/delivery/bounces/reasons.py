"""Failure reasons of delivery attempts, as shown by the API, webhooks and the dashboard."""

from enum import StrEnum


class FailureReason(StrEnum):
    """The class of a failure. Those in RECIPIENT_FAULTS suppress the address after a bounce."""

    # The recipient's address.
    UNKNOWN_USER = "unknown_user"
    INACTIVE = "inactive"
    BAD_DOMAIN = "bad_domain"
    BAD_ADDRESS = "bad_address"
    REJECTED = "rejected"  # a bare 550, 553 or 554 without other information
    # The recipient's mailbox; temporary.
    MAILBOX_FULL = "mailbox_full"
    BAD_DOMAIN_UNCONFIRMED = "bad_domain_unconfirmed"  # NXDOMAIN, to be confirmed
    SMTPUTF8_REQUIRED = "smtputf8_required"
    # The host asks to retry later or to send more slowly.
    GREYLISTED = "greylisted"
    RATE_LIMITED = "rate_limited"
    TOO_MANY_RECIPIENTS = "too_many_recipients"
    HOST_TROUBLE = "host_trouble"
    # The sending host.
    REPUTATION = "reputation"
    BLOCKLISTED = "blocklisted"
    REVERSE_DNS = "reverse_dns"
    AUTHENTICATION = "authentication"
    RELAY_DENIED = "relay_denied"
    # The message.
    SPAM = "spam"
    VIRUS = "virus"
    POLICY = "policy"
    TOO_LARGE = "too_large"
    PROTOCOL = "protocol"
    # The way to the host.
    NETWORK = "network"
    DNS = "dns"
    TLS = "tls"
    ROUTING_LOOP = "routing_loop"
    TARGET_REFUSED = "target_refused"  # an MX host with a private address
    EXPIRED = "expired"
    LOGIN_REFUSED = "login_refused"
    OUTCOME_UNKNOWN = "outcome_unknown"  # the reply to the final dot, or to a provider's call, was lost
    # No attempt was made.
    DESTINATION_FULL = "destination_full"
    DESTINATION_SHUT = "destination_shut"
    DAILY_LIMIT = "daily_limit"  # the last transport of a route has sent its messages of the day
    # A provider's API.
    PROVIDER_REFUSED = "provider_refused"
    UNDETERMINED = "undetermined"


RECIPIENT_FAULTS = frozenset(
    {
        FailureReason.UNKNOWN_USER,
        FailureReason.INACTIVE,
        FailureReason.BAD_DOMAIN,
        FailureReason.BAD_ADDRESS,
        FailureReason.REJECTED,
    }
)
