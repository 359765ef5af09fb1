"""Bounces from before, and beside, RFC 3464: text that people were meant to read.

Exim, qmail, sendmail, Notes, Exchange, GroupWise, IMail and their kin say the same things in the same
places: whom the mail was for on a line of its own, what the other host answered beneath, then the mail itself.
"""

import re
from collections.abc import Iterator

from inbound.dsn import MAX_DIAGNOSTIC, failure, reply_code, status_code
from inbound.facts import Fact, Kind
from inbound.judgement import reason_of, reason_of_message
from inbound.mime import Message

MAX_LINES = 400
MAX_ADDRESSES = 50

DAEMON = re.compile(
    r"mailer-?daemon|post[_-]?master|mail ?delivery|mail ?daemon|mdaemon|mail ?(system|administrator|admin|server|router)|"
    r"delivery ?(subsystem|system|service|agent|notification)|system administrator|^<>$|microsoft ?exchange|daemon@|postman@",
    re.IGNORECASE,
)
SUBJECT = re.compile(
    r"undeliver|(un|not |non[- ]?)deliver|deliver\w* (status|fail|report|problem|error|notif|has|incomplete|unsuccess|delay)|"
    r"return(ed|ing)? (mail|message|e-?mail|to sender)|fail(ure|ed) (notice|notif|deliver|to deliver)|mail (delivery )?(fail|error|system)|"
    r"(could|can) ?not be (deliver|sent)|message (status|delivery|delayed|not)|warning: |permanent|error|bounce|mail delivery|"
    r"unzustellbar|zustell|nicht (zu)?gestellt|non (remis|distribu|délivr)|échec|no (entregad|se pudo)|devuelt|devolv|mancata|"
    r"não (entreg|foi)|недостав|не (может быть )?достав|配信|送信.{0,6}(エラー|できま)|宛先|不達|エラー|退信|無法|无法",
    re.IGNORECASE,
)
BODY = re.compile(
    r"hi\. this is the|this is the [^\n]{0,60}(mail|server|program|daemon)|(could|can|did|was|were|has|have|been)( not|n.t)( \w+)? ?(be )?(been )?"
    r"(deliver|reach|sent|transmit|able to deliver)|(unable|not able|wasn.t able|failed|failure|couldn.t|trouble|problems?) (to )?deliver|"
    r"delivery (to|of|has|failed|failure|problem|status|error|report)|undeliver|(fatal|delivery|permanent) (delivery )?errors?|"
    r"(not|non)[- ]?deliver|returned (mail|message)|unknown (user|recipient)|user unknown|failed (addresses|recipient)|not reach|rejected|"
    r"nicht (zu)?gestellt|nicht erreicht|unzustellbar|n.a(vez)? pas pu|n.a pas été|no (se )?(ha|pudo|puede)|impossibile|não (pôde|foi)|"
    r"送信できません|配信|お届けできません|エラー|не (удалось|может|была)|доставлен|无法|無法",
    re.IGNORECASE,
)
WAITING = re.compile(
    r"(has|have|was|were|is|been) (not yet been delivered|delayed)|not yet (been )?(able|deliver)|delivery[^\n]{0,60} (has been |is )?delayed|"
    r"this is a warning message only|you do not need to re-?send|will (continue|keep|be tried|be retried|retry|try)|still being (re)?tried|"
    r"transient non-fatal|temporary (delivery )?(problem|failure|warning)|message is delayed|delayed mail|no action is required|"
    r"(attempts? to deliver|retr(y|ies)|trying)[^\n]{0,40} (will )?continue|verzöger|retardée?|遅延",
    re.IGNORECASE,
)
FINAL = re.compile(
    r"permanent(ly)? (error|fail|fatal)|failed permanently|given? up|giving up|will not (retry|try|be re)|no further attempt|(?<!non-)fatal errors|"
    r"could not be delivered to|expired|retry timeout exceeded|final",
    re.IGNORECASE,
)
# Where the notice ends and the mail that came back begins.
ENCLOSED = re.compile(
    r"^[ \t>*-]*(-{2,} ?(this is a copy|below this line|original message|returned (message|mail)|message (header|text|follows|contents)|included|"
    r"forwarded|the (header|body|message|original|full)|headers?\b|unsent|begin|start|undeliv|transcript of the original|returned headers)|"
    r"below this line is a copy|below is a copy|original (message|mail|headers?)( headers?| text| follows| contents)?[ :.-]*$|"
    r"(the )?(original|returned|rejected|undelivered) (message|mail|e-?mail|header)s?[^\n]{0,30}(follow|below|attached|begin|:$)|"
    r"(message|mail) (headers?|text|body) follow|the (headers?|body|first)[^\n]{0,40}(of|follow)[^\n]{0,40}$|"
    r"a copy of (the|your) (original )?(message|mail)|(return-path|received|dkim-signature|x-received|message-id|mime-version):[ \t])",
    re.IGNORECASE,
)
# What stands in front of an address that has a line to itself, and what may stand behind it.
LABELS = frozenset(
    "smtp rfc822 mailto to recipient recipients address user error rcpt email e-mail an empfänger destinataire 宛先".split()
) | {"addressed to", "unknown user", "invalid address", "rcpt to", "final-recipient", "failed recipient", "failed address"}
SPEC = re.compile(r"([^\s@<>\[\]\"'(),;:]{1,64}@[A-Za-z0-9.-]{3,255})([>\])\"'.]{0,4})")
BEHIND = re.compile(
    r"$|[:;,(=\[-]|\s*<|\.\.\.|\s+(?:on|-|\.\.\.|\(|invalid|unknown|user|failed|was|could|not|\[|=|:)", re.IGNORECASE
)
UNDELIVERABLE = re.compile(r"^(undeliverable|not delivered|delivery failed) to:?\s+", re.IGNORECASE)
WITHIN = re.compile(
    r"(?:rcpt to|recipient|to|user|mailbox|address|account|deliver(?:y|ed)?|smtp)\s?[:=]?\s?[<\[(](?:smtp:)?([^\s@<>\[\]()]{1,64}@[a-z0-9.-]{3,255})[>\])]",
    re.IGNORECASE,
)
OF_THE_SENDER = re.compile(r"\s*(original )?(from|sender|subject|message-?id|reply-to|return-path|date)\s*:", re.IGNORECASE)
OURS = re.compile(r"^(mailer-daemon|postmaster|abuse|support|helpdesk|noreply|no-reply|hostmaster|admin|administrator)@", re.IGNORECASE)


def facts_of(message: Message, notice: str) -> tuple[Fact, ...]:
    """Return what a notice in plain words reports, one fact for all that it names; nothing when it is no notice."""
    if not _is_notice(message, notice):
        return ()
    lines = _own_lines(notice)
    own = "\n".join(lines)
    diagnostic = _diagnostic(lines)
    fact = failure(
        kind=_kind(message, own),
        recipients=tuple(_recipients(message, lines)),
        status=status_code(diagnostic),
        code=reply_code(diagnostic),
        diagnostic=diagnostic,
        notice=own,
    )
    return (fact,)


def own_words(notice: str) -> str:
    """Return a notice without the mail that it gives back."""
    return "\n".join(_own_lines(notice))


def _is_notice(message: Message, notice: str) -> bool:
    if message.header("x-failed-recipients"):
        return True
    senders = [message.header(name) for name in ("from", "return-path", "sender", "x-sender")]
    is_daemon = any(DAEMON.search(sender) for sender in senders)
    is_titled = bool(SUBJECT.search(message.header("subject")))
    is_worded = bool(BODY.search(notice[:3_000]))
    return [is_daemon, is_titled, is_worded].count(True) >= 2


def _own_lines(notice: str) -> list[str]:
    lines = []
    for line in notice.split("\n", MAX_LINES)[:MAX_LINES]:
        if lines and ENCLOSED.match(line[:200]):
            break
        lines.append(line.rstrip()[:1_000])
    return lines


def _kind(message: Message, own: str) -> Kind:
    told = f"{message.header('subject')}\n{own}"
    return Kind.DELAY if WAITING.search(told) and not FINAL.search(own) else Kind.BOUNCE


def _recipients(message: Message, lines: list[str]) -> list[str]:
    named = [word.strip(" <>") for word in message.header("x-failed-recipients").split(",") if "@" in word]
    return list(dict.fromkeys([*named, *_named(lines)]))[:MAX_ADDRESSES]


def _named(lines: list[str]) -> Iterator[str]:
    for line in lines:
        if "@" not in line or OF_THE_SENDER.match(line):
            continue
        found = _alone(line[:400]) or WITHIN.search(line[:400]) or _alone(line[:400].rpartition(": ")[2])
        if found and not OURS.match(found[1]):
            yield found[1].rstrip(".")


def _alone(line: str) -> re.Match[str] | None:
    """Return the address that a line is about, when it begins with it."""
    rest = line.strip(" \t>*•\"'-")
    for _ in range(2):
        label, colon, behind = rest.partition(":")
        if colon and label.strip(" <[(").lower() in LABELS:
            rest = behind.strip()
    rest = UNDELIVERABLE.sub("", rest).lstrip("<[(\"'")
    found = SPEC.match(rest)
    return found if found and BEHIND.match(rest[found.end() :]) else None


def _diagnostic(lines: list[str]) -> str:
    """Return the line with a code or with words that tell why, and what belongs to it."""
    filled = [line.strip() for line in lines if line.strip()]
    for tells in (_tells_both, _tells_code, _tells_why, _tells_somehow):
        for number, line in enumerate(filled):
            if tells(line):
                return " ".join(filled[number : number + 3])[:MAX_DIAGNOSTIC]
    return ""


def _tells_why(line: str) -> bool:
    return reason_of(line) is not None


def _tells_somehow(line: str) -> bool:
    return reason_of_message(line) is not None


def _tells_code(line: str) -> bool:
    return bool(reply_code(line) or status_code(line))


def _tells_both(line: str) -> bool:
    return _tells_code(line) and _tells_why(line)
