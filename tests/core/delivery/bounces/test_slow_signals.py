"""Replies that ask for less email, and block lists that have the sending address (docs/decisions/0278)."""

from core.delivery.bounces.classification import SmtpStage, classify
from core.delivery.bounces.listings import OWN_LIST
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryStatus, Reply
from core.delivery.bounces.signals import SignalKind, signal_of
from core.delivery.transports.smtp.errors import LISTING_WAIT, SmtpError
from tests.rows import each

# A rate: fewer messages or connections. Distrust suspends, or is expressed by a rate.
RATE = {SignalKind.SLOW, SignalKind.NARROW}
REPUTATION = {SignalKind.SUSPEND}
LISTED = {SignalKind.LISTED}
NOTHING = {SignalKind.NONE}
LIMITED, DISTRUSTED = FailureReason.RATE_LIMITED, FailureReason.REPUTATION
TROUBLE, BLOCKED = FailureReason.HOST_TROUBLE, FailureReason.BLOCKLISTED

# Replies of receivers, with the reason and the signal; the stage is that where they send it.
TEXTS = [
    ("dot", "421 4.7.28 Gmail has detected an unusual rate of mail originating from your IP address", LIMITED, RATE),
    ("dot", ("421 4.7.28 [192.0.2.1] Our system has detected an unusual rate of unsolicited mail originating from your "
     "IP address. Mail sent from your IP address has been temporarily rate limited."), DISTRUSTED, RATE),
    ("banner", "421 4.7.0 [192.0.2.1] Try again later, closing connection. gsmtp", TROUBLE, RATE),
    ("rcpt", "451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (S77714)", LIMITED, RATE),
    ("dot", "451 4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to IP reputation. (S775)",
     DISTRUSTED, REPUTATION),
    ("mail", ("421 RP-001 Unfortunately, some messages from 192.0.2.1 weren't sent. We have limits for how many "
     "messages can be sent per hour and per day."), LIMITED, RATE),
    ("mail", "421 4.3.2 The maximum number of concurrent connections has exceeded a limit", LIMITED, RATE),
    ("mail", ("421 4.7.0 [TSS04] Messages from 192.0.2.1 temporarily deferred due to unexpected volume or user "
     "complaints - 4.16.55.1"), DISTRUSTED, REPUTATION),
    ("mail", "421 4.7.0 [TS01] Messages from 192.0.2.1 temporarily deferred", LIMITED, RATE),
    ("mail", "421 Max message per connection reached, closing transmission channel", LIMITED, RATE),
    ("dot", ("421 4.7.1 Messages to ada@icloud.com deferred due to excessive volume. Try again later - "
     "https://support.apple.com/en-us/HT204137"), LIMITED, RATE),
    ("rcpt", "452 4.1.0 192.0.2.1 Too many recent messages", LIMITED, RATE),
    ("rcpt", "451 4.2.0 Throttled - https://postmaster.comcast.net/smtp-error-codes.php#RL000010", LIMITED, RATE),
    ("rcpt", "451 4.7.0 You have exceeded message rate limit", LIMITED, RATE),
    ("rcpt", "451 4.7.1 Received too many messages from a new or untrusted IP: 192.0.2.1 (G28)", LIMITED, RATE),
    ("rcpt", "451 4.7.1 Received too much email from your server", LIMITED, RATE),
    ("rcpt", ("451 4.3.0 <mx[192.0.2.1]>: Client host rejected: Throttled - Too much spam from your mail server. Try "
     "again later."), LIMITED, RATE),
    ("banner", "421 Too many concurrent connections from this client (G2)", LIMITED, RATE),
    ("ehlo", "421 Trop de connexions, veuillez verifier votre configuration", LIMITED, RATE),
    ("banner", "421 HL:ICC 163 smtp", LIMITED, RATE),
    ("rcpt", "550 Ip frequency limited", LIMITED, RATE),
    ("dot", "451 4.7.1 The reputation of your server is too low", DISTRUSTED, REPUTATION),
    ("starttls", "421 4.3.2 Shutting down", FailureReason.TLS, RATE),
    ("data", "421 4.3.2 Service not available", TROUBLE, RATE),
    ("rcpt", "450 4.7.1 Client host [192.0.2.1] blocked using zen.spamhaus.org", BLOCKED, LISTED),
    ("dot", "421 4.7.0 Suspicious due to the very low reputation of the sending domain", DISTRUSTED, RATE),
    # Neither the pace nor the sending address.
    ("rcpt", "451 4.7.1 Greylisted, please try again later", FailureReason.GREYLISTED, None),
    ("rcpt", "421 4.7.0 Greylisted, please try again later", FailureReason.GREYLISTED, None),
    ("rcpt", "452 4.2.2 Mailbox full", FailureReason.MAILBOX_FULL, None),
    ("rcpt", "450 4.2.0 User busy", FailureReason.UNDETERMINED, None),
    ("rcpt", ("450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional "
     "messages from being delivered."), LIMITED, None),
    ("rcpt", "451 4.5.1 The recipient <ada@example.com> has exceeded their message rate limit.", LIMITED, None),
    ("dot", "451 4.7.1 Poor reputation of your domain", DISTRUSTED, None),
    ("dot", "451 4.7.1 The message contains a URL that is on a block list", BLOCKED, None),
    ("rcpt", "550 5.1.1 No such user", FailureReason.UNKNOWN_USER, None),
    ("dot", "451 4.3.0 Local error in processing", TROUBLE, None),
    ("banner", "450 4.3.2 Busy", TROUBLE, None),
    ("auth", "454 4.7.0 Temporary authentication failure", TROUBLE, None),
]  # fmt: skip
# The sending address is on a list: with the name of the list.
LISTINGS = [
    (("550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service provider "
     "since part of their network is on our block list (S3150)."), "Microsoft"),
    ("550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent (S3140).", "Microsoft"),
    ("550 5.7.606 Access denied, banned sending IP [192.0.2.1]", "Microsoft"),
    (("550 5.7.1 [192.0.2.1] Our system has detected an unusual rate of unsolicited mail originating from your IP "
     "address. To protect our users from spam, mail sent from your IP address has been blocked."), "Google"),
    (("554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org; "
     "https://www.spamhaus.org/query/ip/192.0.2.1"), "Spamhaus"),
    ("553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1", "Spamhaus"),
    ("550 5.1.1 Mail refused: 192.0.2.1 is listed by bl.spamcop.net", "SpamCop"),
    ("550 5.7.1 Client host [192.0.2.1] blocked using Barracuda Reputation", "Barracuda"),
    (("554 5.7.1 ACL dns_rbl; Client host [192.0.2.1] blocked using sa-ip4tset.blagr.emailsrvr.com=127.26.0.2 "
     "Cloudmark CSI. Please visit http://csi.cloudmark.com/reset-request"), "Proofpoint"),
    ("550 IP blacklisted by CSI. For remediation please use http://csi.cloudmark.com/reset-request/?ip=192.0.2.1",
     "Proofpoint"),
    ("554 Blocked - see https://ipcheck.proofpoint.com/?ip=192.0.2.1", "Proofpoint"),
    ("553 5.3.0 flph844 DNSBL:RBL 521< 192.0.2.1 >_is_blocked. For assistance forward this to abuse_rbl@abuse-att.net",
     "AT&T"),
    ("554 comcast 192.0.2.1 Comcast block for spam. BL000000", "Comcast"),
    ("550 Too many spams from your IP (192.0.2.1), please visit http://postmaster.free.fr/", "Free"),
    ("550 5.7.1 Your IP address has been blocked", OWN_LIST),
]  # fmt: skip
# A list of something else.
OTHER_LISTS = [
    "554 5.7.1 Message contains a URL listed by Spamhaus DBL (192.0.2.1)",
    "554 5.7.1 Sender address [x@alice.example] blocked using dbl.spamhaus.org",
    "550 5.7.1 Message blocked: a link to 192.0.2.1 is listed by multi.surbl.org",
    "554 5.7.1 The domain alice.example is blacklisted, client host mx.alice.example",
    "554 5.7.1 IP address blacklisted by recipient",
    "550 5.7.1 Message blocked by our block list",
]
# Replies of a relay: its words at MAIL, or a code of its trouble without the words of another host.
RELAYED = [
    ("mail", "450 4.7.1 Rate limit exceeded", RATE),
    ("mail", "421 4.7.0 Too much mail", RATE),
    ("dot", "421 4.3.2 Shutting down", RATE),
    ("dot", "454 Throttling failure: Maximum sending rate exceeded.", RATE),
    ("rcpt", "451 4.7.1 Service unavailable, try later", RATE),
    ("dot", "421 4.7.0 [TSS04] Messages temporarily deferred due to user complaints", RATE),
    ("rcpt", "450 4.7.1 Rate limit exceeded", None),
    ("dot", "450 4.7.28 host gmail-smtp-in.l.google.com[192.0.2.9] said: 421 4.7.28 unusual rate of mail", None),
    ("dot", "451 4.7.1 host mx.example.com[192.0.2.9] said: 451 4.7.1 Too many messages", None),
    ("rcpt", "451 4.7.1 Greylisted", None),
    ("dot", "421 4.2.1 The user you are trying to contact is receiving mail too quickly", None),
    ("rcpt", "550 5.7.1 Client host [192.0.2.1] blocked using zen.spamhaus.org", None),
    ("mail", "550 5.7.1 Client host [192.0.2.1] blocked using zen.spamhaus.org", LISTED),
    ("banner", "554 5.7.1 192.0.2.1 is listed by zen.spamhaus.org", LISTED),
]


def outcome_of(stage, reply):
    code, _, text = reply.partition(" ")
    return SmtpError(stage, Reply(int(code), text)).outcome(sender_names=(), recipient="ada@example.com")


@each(("stage", "reply", "reason", "signal"), TEXTS)
def test_a_reply_has_its_reason_and_signal(stage, reply, reason, signal):
    outcome = outcome_of(SmtpStage(stage), reply)
    assert outcome.reason == reason
    assert signal_of(outcome, stage=SmtpStage(stage)).kind in (signal or NOTHING)
    assert not outcome.retry_after


@each("stage", [SmtpStage.BANNER, SmtpStage.EHLO, SmtpStage.MAIL, SmtpStage.RCPT, SmtpStage.DOT])
def test_a_listing_of_the_sending_address_defers_for_four_hours(stage):
    for reply, name in LISTINGS:
        outcome = outcome_of(stage, reply)
        assert (outcome.status, outcome.reason) == (DeliveryStatus.DEFERRED, BLOCKED), reply
        assert (outcome.listed_by, outcome.retry_after) == (name, LISTING_WAIT), reply
        assert signal_of(outcome, stage=stage).kind in (RATE if name == OWN_LIST else LISTED), reply


def test_a_listing_of_the_content_the_domain_or_one_recipient_bounces():
    for reply in OTHER_LISTS:
        outcome = outcome_of(SmtpStage.DOT, reply)
        assert (outcome.status, outcome.listed_by) == (DeliveryStatus.BOUNCED, ""), reply
        assert signal_of(outcome, stage=SmtpStage.DOT).kind is SignalKind.NONE, reply


def test_a_report_about_a_listing_is_final():
    for reply, _ in LISTINGS:
        code, _, text = reply.partition(" ")
        found = classify(Reply(int(code), text), stage=SmtpStage.REPORT)
        assert (found.status, found.reason, found.listed_by) == (DeliveryStatus.BOUNCED, BLOCKED, ""), reply


@each(("stage", "reply", "signal"), RELAYED)
def test_a_relay_is_slowed_by_its_own_words_only(stage, reply, signal):
    outcome = outcome_of(SmtpStage(stage), reply)
    assert signal_of(outcome, stage=SmtpStage(stage), is_relay=True).kind in (signal or NOTHING)
