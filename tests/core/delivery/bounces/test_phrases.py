"""The phrase tables: each phrase alone, and beside a phrase that contradicts it.

A phrase added to one table must neither hide a phrase of another nor make a doubtful refusal certain.
"""

from collections.abc import Iterable

from core.delivery.bounces import bounce_phrases, recipient_phrases
from core.delivery.bounces.classification import SmtpStage, classify, normalized_text
from core.delivery.bounces.phrases import GAP, GAPS, PhraseTable
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.replies import DeliveryStatus, Reply
from interfaces.inbound.reports.classification import classify_bounce
from tests.rows import each

DOUBTS = ("Message blocked by policy", "Sender refused: spam", "Internal system error", "Authentication failed")


def examples(table: PhraseTable, *, without: PhraseTable) -> list[tuple[FailureReason, str]]:
    """Return each phrase of a table as a host could write it, except those that a stronger table has, too.

    Of a gapped phrase, the first alternatives with one word in each gap.
    """
    texts = [(reason, _example(phrase)) for reason, phrases in table.rows for phrase in phrases]
    return [(reason, text) for reason, text in texts if not without.find(normalized_text(text))]


def _example(phrase: str) -> str:
    parts = [part.split("|")[0] for part in GAP.split(phrase.replace("^", " the "))]
    text = " of ".join(part.strip() for part in parts if part not in GAPS).strip(" .")
    return " ".join(word.replace("@", "<ada@example.com>") if word == "@" else word for word in text.split())


def found(text: str, *, code: int = 550, stage: SmtpStage = SmtpStage.RCPT):
    return classify(Reply(code, text), stage=stage)


CERTAIN = examples(recipient_phrases.CERTAIN_PHRASES, without=bounce_phrases.PROVIDER_PHRASES)
LIKELY = examples(recipient_phrases.LIKELY_PHRASES, without=recipient_phrases.CERTAIN_PHRASES)
AMBIGUOUS = [
    example
    for table in (
        recipient_phrases.UNEXPLAINED_PHRASES,
        recipient_phrases.UNAVAILABLE_PHRASES,
        recipient_phrases.POSSIBLE_RECIPIENT_PHRASES,
    )
    for example in examples(table, without=recipient_phrases.CERTAIN_PHRASES)
]
HOST = examples(bounce_phrases.HOST_PHRASES, without=bounce_phrases.PROVIDER_PHRASES)
SENDER = examples(bounce_phrases.SENDER_PHRASES, without=bounce_phrases.PROVIDER_PHRASES)


def blamed(texts: Iterable[str]) -> list[str]:
    """Return the texts that blame the recipient."""
    return [text for text in texts if found(text).is_recipient_fault]


def test_a_phrase_about_the_recipient_alone_is_a_recipient_fault():
    texts = [text for _, text in (*CERTAIN, *LIKELY, *AMBIGUOUS)]
    assert len(texts) > 300
    assert blamed(texts) == texts


def test_a_certain_phrase_outweighs_a_doubt_but_not_the_sender_or_the_host():
    texts = [f"{text}. Attachment preferences" for _, text in CERTAIN]
    assert blamed(texts) == texts
    assert not blamed(f"Sender address rejected: {text}" for _, text in CERTAIN)
    assert not blamed(f"{text}. Client host blocked using zen.spamhaus.example" for _, text in CERTAIN)
    assert not blamed(f"{text}. Try again later" for _, text in CERTAIN)


@each("doubt", DOUBTS)
def test_a_doubt_outweighs_a_phrase_that_is_not_certain(doubt):
    assert not blamed(f"{text}. {doubt}" for _, text in (*LIKELY, *AMBIGUOUS))
    assert not blamed(f"{doubt}: {text}" for _, text in (*LIKELY, *AMBIGUOUS))


def test_a_phrase_about_the_sender_or_the_host_never_blames_the_recipient():
    assert not blamed(text for _, text in (*HOST, *SENDER))
    assert not blamed(f"5.0.0 {text}" for _, text in (*HOST, *SENDER))


@each(("nouns", "behind", "before"), [
    (bounce_phrases.SENDERS, bounce_phrases.REFUSED, bounce_phrases.UNUSABLE),
    (bounce_phrases.OWN_ACCOUNT, bounce_phrases.CLOSED_TO_SENDERS, ""),
    (bounce_phrases.SIGNERS, bounce_phrases.REFUSED, ""),
    (bounce_phrases.OWN_HOST, bounce_phrases.REFUSED, ""),
])  # fmt: skip
def test_each_word_for_the_sender_rules_out_the_recipient(nouns, behind, before):
    texts = [f"5.1.0 The {noun} {word}" for noun in nouns.split("|") for word in behind.split("|")]
    texts += [f"5.1.0 {word} {noun}" for noun in nouns.split("|") for word in before.split("|") if word]
    assert not blamed(texts)


@each("table", [bounce_phrases.HOST_PHRASES, bounce_phrases.SENDER_PHRASES])
def test_a_phrase_of_an_earlier_table_is_in_no_certain_phrase(table):
    """A short phrase such as "ip address" would hide "couldn't find a mail exchanger or IP address"."""
    assert not [text for _, text in CERTAIN if table.find(normalized_text(text))]


REJECTED = "<ada@example.com>: Recipient address rejected"


@each("code", ["", "5.0.0 ", "5.1.0 ", "5.3.0 "])
@each(("explanation", "reason"), [
    ("Internal system error", FailureReason.HOST_TROUBLE),
    ("Server configuration problem", FailureReason.HOST_TROUBLE),
    ("we only accept mail from Switzerland", FailureReason.POLICY),
    ("Mailer error. See https://mx.example.com/#error", FailureReason.POLICY),
    ("On hold", FailureReason.POLICY),
    ("Quota exceeded", FailureReason.MAILBOX_FULL),
    ("any words at all", FailureReason.POLICY),
])  # fmt: skip
def test_the_words_after_recipient_address_rejected_decide(code, explanation, reason):
    refusal = found(f"{code}{REJECTED}: {explanation}")
    assert (refusal.reason, refusal.is_recipient_fault) == (reason, False)


@each("text", [
    REJECTED, f"5.1.0 {REJECTED}.", f"{REJECTED}: User unknown in local recipient table",
    f"5.0.0 {REJECTED} (in reply to RCPT TO command)", f"{REJECTED}. Giving up on 192.0.2.1.",
    f"{REJECTED}. See https://mx.example.com/550", "#5.1.0 Address rejected ada@example.com",
])  # fmt: skip
def test_a_refusal_without_explanation_is_a_recipient_fault(text):
    assert found(text).is_recipient_fault


@each("text", [
    "Return path does not exist", "5.1.1 Return-path address unknown", "5.1.2 Sender host unknown",
    "El dominio del remitente no existe", "Le domaine de l'expéditeur n'existe pas", "Der Absender existiert nicht",
    "Il dominio del mittente non esiste", "O domínio do remetente não existe", "Домен отправителя не существует",
    "发件人不存在",
])  # fmt: skip
@each("stage", [SmtpStage.RCPT, SmtpStage.REPORT])
def test_a_text_about_the_sender_in_any_language_never_blames_the_recipient(stage, text):
    assert (found(text, stage=stage).reason, found(text, stage=stage).is_recipient_fault) == ("policy", False)
    assert not classify_bounce(status="5.1.1", code=550, diagnostic=text).is_hard


@each("text", ["buzón lleno", "buzon lleno", "La casella è piena", "Boîte pleine"])
def test_accents_do_not_count(text):
    assert found(text).reason == FailureReason.MAILBOX_FULL


@each(("quoted", "reason"), [
    ("5.1.1 <ada@example.com>: User unknown", FailureReason.UNKNOWN_USER),
    ("5.7.1 <s@demo.example>: Sender address rejected", FailureReason.POLICY),
    ("Message rejected as spam", FailureReason.SPAM),
])  # fmt: skip
def test_of_a_reply_quoted_after_a_heading_only_the_reply_counts(quoted, reason):
    """IronPort and SES give this heading to every reply with 5.1.0."""
    text = f"5.1.0 - Unknown address error 550-'{quoted}' (delivery attempts: 0)"
    assert found(text, stage=SmtpStage.REPORT).reason == reason


@each("stage", [SmtpStage.DATA, SmtpStage.DOT, SmtpStage.REPORT])
@each("text", ["no valid recipients", "5.5.1 Error: no valid recipients", "No correct recipients"])
def test_an_effect_of_earlier_replies_blames_nobody(stage, text):
    assert not found(text, code=554, stage=stage).is_recipient_fault
    assert not classify_bounce(status="5.1.1", code=554, diagnostic=text).is_hard
    assert found(f"5.1.1 User unknown. {text}", code=554, stage=stage).is_recipient_fault


@each("text", ["demo.example does not exist", "5.1.0 demo.example does not exist", "unknown host"])
@each("stage", [SmtpStage.MAIL, SmtpStage.DATA, SmtpStage.DOT])
def test_a_refusal_of_the_sender_never_blames_the_recipient(stage, text):
    refusal = found(text, code=553, stage=stage)
    assert (refusal.status, refusal.is_recipient_fault) == (DeliveryStatus.BOUNCED, False)
    assert refusal.reason not in RECIPIENT_FAULTS


@each("quote", [
    "SMTP error from remote mail server after MAIL FROM:<a@demo.example> SIZE=1024:",
    "SMTP error from remote mail server after pipelined MAIL FROM:<a@demo.example>:",
    "SMTP error from remote mail server after end of data:",
    "Connected to 192.0.2.1 but sender was rejected. Remote host said:",
    ">>> MAIL From:<a@demo.example>\n<<<",
    "host mx.example.com said (in reply to MAIL FROM command)",
])  # fmt: skip
def test_a_reply_quoted_with_another_command_than_rcpt_never_blames_the_recipient(quote):
    text = f"{quote} 553 5.1.0 demo.example does not exist"
    assert not found(text, code=553, stage=SmtpStage.REPORT).is_recipient_fault
    after_rcpt = "SMTP error from remote mail server after RCPT TO:<a@demo.example>: 553 5.1.0 User unknown"
    assert found(after_rcpt, code=553, stage=SmtpStage.REPORT).is_recipient_fault


@each("text", [
    "Sorry, I couldn't find a mail exchanger or IP address. (#5.4.4)",
    "an MX or SRV record indicated no SMTP service",
    "5.1.2 The domain could not be found in DNS",
    "No mx record found for domain=nowhere.example",
])  # fmt: skip
def test_a_dead_domain_is_a_bad_domain_and_not_a_blocklist(text):
    dead = found(text, code=0, stage=SmtpStage.REPORT)
    assert (dead.reason, dead.is_recipient_fault) == (FailureReason.BAD_DOMAIN, True)
    assert not found(f"{text} for the sender domain", code=0, stage=SmtpStage.REPORT).is_recipient_fault


def test_a_gapped_phrase_matches_whole_words_only():
    """ "ip*blocked" is about an IP address, not about a recipient."""
    assert PhraseTable((FailureReason.BLOCKLISTED, ("ip*blocked",))).find(" your ip is blocked ")
    assert not PhraseTable((FailureReason.BLOCKLISTED, ("ip*blocked",))).find(" recipient is blocked ")


def test_an_uncertain_phrase_outweighs_every_phrase_about_the_recipient():
    rows = recipient_phrases.UNCERTAIN_PHRASES.rows
    for number, uncertain in enumerate(_example(phrase) for _, phrases in rows for phrase in phrases):
        # Each phrase of either table is in several pairs; all pairs would take seconds.
        texts = [text for _, text in (*CERTAIN, *LIKELY)[number % 10 :: 10]]
        assert not blamed(f"{text}, {uncertain}" for text in texts)
        assert not blamed(f"{uncertain} {text}" for text in texts)


@each(("certain", "uncertain"), [
    ("No such user", "No such user: the address may not exist"),
    ("Benutzer existiert nicht", "Benutzer existiert nicht, oder Sie sind nicht berechtigt"),
    ("l'adresse n'existe pas", "Il se peut que l'adresse n'existe pas"),
    ("Utilisateur inconnu", "Utilisateur inconnu ou boîte bloquée: blocked or full"),
    ("No such user", "No such user or you are not authorized to send to this address"),
    ("Unknown user", "Unknown user, or blocked"),
    ("User not listed in Domino Directory", "User not unique: several matches, or not listed in Domino Directory"),
    ("uživatel neexistuje", "uživatel pravděpodobně neexistuje nebo nemáte oprávnění"),
])  # fmt: skip
def test_a_host_that_is_not_sure_blames_nobody(certain, uncertain):
    assert found(certain).is_recipient_fault
    assert not found(uncertain).is_recipient_fault
