"""Why a report was written: what a host answered goes to delivery.bounces.classification, which knows hosts' answers.

Reports say more than answers: programs put their own words in front of them, or instead of them, and in the
language of their owner. WORDS holds those; a notice that only greets and regrets says nothing.
"""

import re
from dataclasses import dataclass

from delivery.bounces.bounce_phrases import CIRCUMSTANCES, OF_CONTENTS, OF_HOSTS, OF_SENDERS
from delivery.bounces.classification import Stage, blame, classify, plain_text
from delivery.bounces.phrases import Phrases
from delivery.bounces.reasons import RECIPIENT_FAULTS, Reason
from delivery.bounces.replies import MAX_LENGTH, DeliveryStatus, Reply

MAX_LINES = 60
# What DNS says for good of a domain (RFC 2308, RFC 7505), though Google reports it with 4.0.0 when it gives up.
LASTING = (" nxdomain ", " null mx ")

WORDS = Phrases(
    # Of commands, of groups and of what is not said; their words are those of unknown people.
    (
        Reason.PROTOCOL,
        ("command unrecognized", "command not recognized", "unrecognized command", "command unrecognised"),
    ),
    (Reason.POLICY, ("the group you tried to contact", "permanent failure for one or more recipients*blocked")),
    # PowerMTA's X-PowerMTA-BounceCategory.
    (Reason.MAILBOX_FULL, ("quota-issues",)),
    (Reason.INACTIVE, ("inactive-mailbox",)),
    (Reason.BAD_DOMAIN, ("bad-domain",)),
    (Reason.UNKNOWN_USER, ("bad-mailbox",)),
    # In other alphabets, whose words have no blanks between them.
    (Reason.MAILBOX_FULL, ("いっぱい", "容量", "邮箱已满", "郵箱已滿", "переполнен")),
    (Reason.BAD_DOMAIN, ("ドメインが見つかりません", "ドメインが存在し", "домен не существует")),
    (
        Reason.UNKNOWN_USER,
        (
            *("宛先不明", "あて先不明", "宛先が見つかり", "存在しない", "存在しません", "存在していません"),
            *("ユーザーが見つかり", "ユーザは見つかり", "該当するユーザ", "ユーザ不明", "ユーザー不明"),
            *("не существует", "не найден", "неизвестный пользователь", "нет такого пользователя"),
            *("用户不存在", "收件人不存在", "用戶不存在", "不存在", "존재하지 않"),
        ),
    ),
)
# Sentences that open and close notices of every cause.
PLEASANTRIES = re.compile(
    r"(unable|able|failed|not|n.t|trouble|error) (to )?(be )?(been )?(deliver|send|sent|reach|process)[^.:]{0,40}"
    r"(address(es)?|recipient\(?s?\)?|destinations?|people|list|groups?|message|mail)\b|"
    r"(the )?following (address|recipient|user|destination)\(?s?|this is a permanent error|"
    r"(for further assistance|if you (do so|believe|think|need)|contact your|do not reply).*|"
    r"please (contact|forward|send|do not|include|note|try).*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Judgement:
    """is_permanent: a refusal, as against an attempt that was given up. is_hard: the address itself is at fault."""

    reason: Reason
    is_permanent: bool = True
    is_hard: bool = False


def judge(*, status: str, code: int, diagnostic: str) -> Judgement:
    """Return why a host refused, by its codes and its words."""
    found = classify(Reply(code, f"{status} {diagnostic}"), stage=Stage.REPORT)
    text = plain_text(diagnostic)
    if found.reason is Reason.BAD_DOMAIN and any(mark in text for mark in LASTING):
        return Judgement(Reason.BAD_DOMAIN, is_hard=True)
    own = WORDS.find(text)
    if not own:
        return Judgement(found.reason, found.verdict is DeliveryStatus.BOUNCED, found.is_recipient_fault)
    is_permanent = not status.startswith("4") and code // 100 != 4
    return Judgement(own, is_permanent, is_permanent and own in RECIPIENT_FAULTS)


def judge_notice(notice: str) -> Judgement:
    """Return why a notice without any code was written, by the first line that says it."""
    lines = notice.splitlines()[:MAX_LINES]
    reasons = (tell(line) for tell in (reason_of, reason_of_message) for line in lines)
    reason = next(filter(None, reasons), Reason.UNDETERMINED)
    return Judgement(reason, is_hard=reason in RECIPIENT_FAULTS)


def reason_of(line: str) -> Reason | None:
    """Return what a line of a notice says of the recipient or of the sender, None when it says nothing."""
    text = _telling(line)
    return WORDS.find(text) or OF_SENDERS.find(text) or OF_HOSTS.find(text) or blame(text)


def reason_of_message(line: str) -> Reason | None:
    """Return what a line of a notice says of the message or of the way; its words are used for much else, too."""
    text = _telling(line)
    return OF_CONTENTS.find(text) or CIRCUMSTANCES.find(text)


def _telling(line: str) -> str:
    return plain_text(PLEASANTRIES.sub(" ", line[:MAX_LENGTH]))
