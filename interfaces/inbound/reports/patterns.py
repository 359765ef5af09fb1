"""Patterns that recognize bounce notices by headers and lines. Linear: no repetition contains another.

Written from the messages that mail programs document, in the languages in which they are configured.
"""

import re


def any_of(*patterns: str) -> re.Pattern[str]:
    """Return one case-insensitive pattern that matches any of the given ones."""
    return re.compile("|".join(patterns), re.IGNORECASE)


# Senders of notices.
DAEMON = any_of(
    r"mailer-?daemon",
    r"post[_-]?master",
    r"mail ?(delivery|daemon|system|administrator|admin|server|router)",
    r"mdaemon",
    r"delivery ?(subsystem|system|service|agent|notification)",
    r"system administrator",
    r"microsoft ?exchange",
    r"daemon@",
    r"postman@",
    r"^<>$",
)
SUBJECT = any_of(
    r"undeliver",
    r"(un|not |non[- ]?)deliver",
    r"deliver\w{0,20} (status|fail|report|problem|error|notif|has|incomplete|unsuccess|delay)",
    r"return(ed|ing)? (mail|message|e-?mail|to sender)",
    r"fail(ure|ed) (notice|notif|deliver|to deliver)",
    r"mail (delivery )?(fail|error|system)|mail delivery",
    r"(could|can) ?not be (deliver|sent)",
    r"message (status|delivery|delayed|not)",
    r"warning: |permanent|error|bounce",
    r"unzustellbar|zustell|nicht (zu)?gestellt",
    r"non (remis|distribu|délivr)|échec",
    r"no (entregad|se pudo)|devuelt|devolv|mancata|não (entreg|foi)",
    r"недостав|не (может быть )?достав",
    r"配信|送信.{0,6}(エラー|できま)|宛先|不達|エラー|退信|無法|无法",
)
BODY = any_of(
    r"hi\. this is the",
    r"this is the [^\n]{0,60}(mail|server|program|daemon)",
    r"(could|can|did|was|were|has|have|been)( not|n.t)( \w+)? ?(be )?(been )?(deliver|reach|sent|transmit|able to)",
    r"(unable|not able|wasn.t able|failed|failure|couldn.t|trouble|problems?) (to )?deliver",
    r"delivery (to|of|has|failed|failure|problem|status|error|report)",
    r"undeliver|(not|non)[- ]?deliver|not reach|rejected",
    r"(fatal|delivery|permanent) (delivery )?errors?",
    r"returned (mail|message)",
    r"unknown (user|recipient)|user unknown|invalid user address|no such user",
    r"failed (addresses|recipient)",
    r"nicht (zu)?gestellt|nicht erreicht|unzustellbar",
    r"n.a(vez)? pas pu|n.a pas été",
    r"no (se )?(ha|pudo|puede)|impossibile|não (pôde|foi)",
    r"送信できません|配信|届きません|届けでき|エラー|无法|無法",
    r"не (удалось|может|была)|доставлен",
)
# Sentences that only a warning has: the program still retries.
WARNING = any_of(
    r"has not yet been delivered|this is a warning message only|this is just a warning",
    r"you do not need to re-?send|no action is required on your part|temporary failure report",
    r"delivery attempts will continue|will continue to (try|attempt)|still being (re)?tried",
)
# The program still retries, unless the notice is final.
DELAYED = any_of(
    r"(has|have|was|were|is|been) (not yet been delivered|delayed)",
    r"not yet (been )?(able|deliver)",
    r"delivery[^\n]{0,60} (has been |is )?delayed",
    r"this is a warning message only|you do not need to re-?send",
    r"will (continue|keep|be tried|be retried|retry|try)|still being (re)?tried",
    r"transient non-fatal|temporary (delivery )?(problem|failure|warning)",
    r"message is delayed|delayed mail|no action is required",
    r"(attempts? to deliver|retr(y|ies)|trying)[^\n]{0,40} (will )?continue",
    r"verzöger|retardée?|遅延",
)
FINAL = any_of(
    r"permanent(ly)? (error|fail|fatal)|failed permanently|(?<!non-)fatal errors",
    r"\b(given|gave|giving) up|will not (retry|try|be re)|no further attempt",
    r"could not be delivered to|expired|retry timeout exceeded|\bfinal(ly)?\b(?!-)",
)
# Clauses about what may happen later; they say nothing about the present.
CONDITIONAL = any_of(r"\b(eventually|if|until|unless|before|once|may|might|when|will(?! not)) [^.]{0,200}")
# Subjects of people who answer or forward a notice, which then is in their text.
ANSWER_SUBJECT = any_of(
    r"^\s*(re|aw|antw|sv|vs|rif|rv|res|odp|fw|fwd|wg|tr|enc|i|回复|答复|转发|返信|転送)(\[\d{1,3}\])?\s*(:|\uff1a)"
)
# An SMTP reply or a status code, not a telephone number; and the programs that send nothing but notices.
REPLY = any_of(r"(?<![\d.])[45][0-5]\d[ -](#?[45]\.\d|\D)", r"(?<![\d.])[45]\.\d{1,3}\.\d{1,3}(?![\d]|\.\d)")
MAILER = any_of(
    r"mailer-?daemon", r"post[_-]?master", r"mail ?(delivery|daemon|system)", r"microsoft ?exchange", r"^<>$"
)
# Notices that mail programs send to their operator: Exim about the filter of a user, Postfix about a session.
OPERATOR_SUBJECT = any_of(r"^\s*error\(s\) in forwarding or filtering", r"^\s*postfix smtp server: errors? from")
# RFC 5429, section 2.1: a Sieve script rejects a message with an MDN. Dovecot and Cyrus.
REJECTED_BY_SCRIPT = any_of(r"automatically rejected|auto-replied \(rejected\)")
# The line at which the notice ends and the returned message begins.
INDENT = r"^[ \t>*-]{0,40}"
RETURNED_MESSAGE = any_of(
    rf"{INDENT}-{{2,}} ?(this is a copy|below this line|original message|included|forwarded)",
    rf"{INDENT}-{{2,}} ?(headers?\b|unsent|begin|start)",
    rf"{INDENT}-{{2,}} ?(returned (message|mail|headers)|message (header|text|follows|contents)|undeliv)",
    rf"{INDENT}-{{2,}} ?(the (header|body|message|original|full)|transcript of the original)",
    rf"{INDENT}(below this line is a copy|below is a copy)",
    rf"{INDENT}original (message|mail|headers?)( headers?| text| follows| contents)?[ :.-]*$",
    rf"{INDENT}(the )?(original|returned|rejected|undelivered) (message|mail|e-?mail|header).{{0,30}}(follow|below)",
    rf"{INDENT}(the )?(original|returned|rejected|undelivered) (message|mail|e-?mail|header).{{0,30}}(attach|begin|:$)",
    rf"{INDENT}(message|mail) (headers?|text|body) follow",
    rf"{INDENT}the (headers?|body|first).{{0,40}}(of|follow)",
    rf"{INDENT}a copy of (the|your) (original )?(message|mail)",
    r"content-type:[ \t]{0,9}(message/(rfc822|global)|text/rfc822)",
    rf"{INDENT}(return-path|received|dkim-signature|x-received|message-id|mime-version):[ \t]",
)

RETURNED_PART = re.compile(
    r"^content-type:[ \t]{0,9}(?:message/(?:rfc822|global)|text/rfc822)", re.IGNORECASE | re.MULTILINE
)

# Text before an address at the start of a line, and text that may follow the address.
LABELS = frozenset(
    {
        *("smtp", "rfc822", "mailto", "to", "recipient", "recipients", "address", "user", "error", "rcpt", "email"),
        *("e-mail", "an", "empfänger", "destinataire", "宛先", "addressed to", "unknown user", "invalid address"),
        *("rcpt to", "final-recipient", "failed recipient", "failed address"),
    }
)
ADDRESS = re.compile(r"([^\s@<>\[\]\"'(),;:]{1,64}@[A-Za-z0-9.-]{3,255})([>\])\"'.]{0,4})")
AFTER_ADDRESS = any_of(
    r"$|[:;,(=\[-]|\.\.\.",
    r"\s*<",
    r"\s+(on|error|-|\.\.\.|\(|invalid|unknown|user|failed|was|could|not|\[|=|:)",
)
# The original address of a forwarded one: Exim, Postfix and sendmail name both.
FORWARDED_FROM = re.compile(
    r"\((?:ultimately )?(?:generated|expanded) from:? <?([^\s@<>()]{1,64}@[a-z0-9.-]{3,255})>?\)", re.IGNORECASE
)
UNDELIVERABLE = any_of(r"^(undeliverable|not delivered|delivery failed) to:?\s+")
BRACKETED_ADDRESS = re.compile(
    r"(?:rcpt to|recipient|to|user|mailbox|address|account|deliver(?:y|ed)?|smtp)\s?[:=]?\s?"
    r"[<\[(](?:smtp:)?([^\s@<>\[\]()]{1,64}@[a-z0-9.-]{3,255})[>\])]",
    re.IGNORECASE,
)
ADDRESS_IN_TEXT = re.compile(r"[^\s@<>()\[\]\"',;:]{1,64}@[A-Za-z0-9.-]{3,255}")
SENDER_FIELD = any_of(r"\s*(original |mail )?(from|sender|subject|message-?id|reply-to|return-path|date)\s*:")
# Fields of a quoted message: what a notice shows beside the To field when it repeats the message's headers.
MESSAGE_FIELD = any_of(r"[ \t>]*(subject|sent|date|sent date|from|message-?id|cc|importance|size)[ \t]*:")
ADDRESSED_FIELD = any_of(r"[ \t>]*(to|cc|bcc)[ \t]*:")
ROLE_ADDRESS = any_of(
    r"^(mailer-daemon|post_?master|abuse|support|helpdesk|noreply|no-reply|hostmaster|admin|administrator)@"
)

# A DSN has the headers of automatic replies, too, so that no program answers it.
REPORT_TYPE = any_of(r"multipart/report.{0,200}delivery-status")

# Headers of automatic replies: RFC 3834, section 5, and older programs.
AUTO_REPLY_HEADERS = (
    ("auto-submitted", any_of(r"auto-(replied|notified)")),
    ("x-autoreply", any_of(r".")),
    ("x-autorespond", any_of(r".")),
    ("x-autogenerated", any_of(r"reply|group|forward|mirror")),
    ("x-auto-response-suppress", any_of(r".")),
    ("x-mail-autoreply", any_of(r".")),
    ("x-apple-action", any_of(r"vacation")),
    ("precedence", any_of(r"auto[-_]reply")),
    ("x-precedence", any_of(r"auto[-_]reply")),
    ("content-type", any_of(r"disposition-notification")),
)
AUTO_REPLY_SUBJECT = any_of(
    r"^\s*(re: ?)?\[?auto(matic|mated|matische)?[- _]?(re(ply|sponse|sponder)|antwort)?\]?\s*:",
    r"^\s*(re: ?)?(auto-?reply|auto-?response|automatic re|automated re|automatische antwort)",
    r"^\s*(re: ?)?(out of (the )?office|away from|vacation|on (annual )?leave|i am (away|out))",
    r"\b(is|ist|est|está|è) (currently |actualmente )?(out of (the )?office|away from|on (vacation|(annual )?leave))",
    r"\b(ist|est|está|è) ((zurzeit|derzeit) )?(außer haus|abwesend|absent|ausente|fuera de la oficina|assente)",
    r"^\s*(re: ?)?(abwesen|réponse automatique|absence|absent|risposta automatica|respuesta automática)",
    r"^\s*(re: ?)?(resposta automática|automatisch antwoord|automatiskt svar|автоответ)",
    r"^\s*(re: ?)?(自動(返信|応答|回复)|不在|自动回复)",
    r"^\s*(re: ?)?(read: |gelesen: |lu : )",
    r"^\s*(re: ?)?(please confirm|confirm your|verify your|your message to .* awaits)",
    r"\b(challenge|verification required|confirmation required|sender verification|spamarrest|awaits moderator)\b",
)
# Lotus Notes, whose subject is free, and which sends no header for it.
AUTO_REPLY_TEXT = any_of(
    r"this is an automated response to your message|the only notification you will receive while this person is away",
    r"dies ist eine automatische antwort auf ihre nachricht|dies ist die einzige benachrichtigung",
)
