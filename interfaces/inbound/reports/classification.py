"""Bounce classification for reports, based on core.delivery.bounces.classification for quoted SMTP replies.

Reports contain more than replies: programs add their own text, in several languages, before the reply or in place
of it. PHRASES covers that text; BOILERPLATE is ignored, because it occurs in notices of every cause.
"""

import re
from dataclasses import dataclass
from itertools import pairwise

from core.delivery.bounces.bounce_phrases import CONTENT_PHRASES, GENERAL_PHRASES, HOST_PHRASES, SENDER_PHRASES
from core.delivery.bounces.classification import (
    SmtpStage,
    classify,
    normalized_text,
    quoted_stage,
    recipient_reason,
    without_effects,
)
from core.delivery.bounces.phrases import PhraseTable
from core.delivery.bounces.reasons import RECIPIENT_FAULTS, FailureReason
from core.delivery.bounces.recipient_phrases import UNCERTAIN_PHRASES
from core.delivery.bounces.replies import MAX_LENGTH, DeliveryStatus, Reply

MAX_LINES = 60
# Permanent DNS results (RFC 2308, RFC 7505), which Google reports with 4.0.0 when it gives up.
PERMANENT_DNS_ERRORS = (" nxdomain ", " null mx ")

PHRASES = PhraseTable(
    # Before UNKNOWN_USER, with which these phrases overlap.
    (
        FailureReason.PROTOCOL,
        ("command unrecognized", "command not recognized", "unrecognized command", "command unrecognised"),
    ),
    (FailureReason.POLICY, ("the group you tried to contact", "permanent failure for one or more recipients*blocked")),
    # PowerMTA's X-PowerMTA-BounceCategory.
    (FailureReason.MAILBOX_FULL, ("quota-issues",)),
    (FailureReason.INACTIVE, ("inactive-mailbox",)),
    (FailureReason.BAD_DOMAIN, ("bad-domain",)),
    (FailureReason.UNKNOWN_USER, ("bad-mailbox",)),
    # Non-Latin scripts, some without spaces between words.
    (FailureReason.POLICY, ("権限がありません", "許可がありません", "許可されていません")),
    (FailureReason.MAILBOX_FULL, ("いっぱい", "容量", "邮箱已满", "郵箱已滿", "переполнен")),
    (FailureReason.BAD_DOMAIN, ("ドメインが見つかりません", "ドメインが存在し", "домен не существует")),
    (
        FailureReason.UNKNOWN_USER,
        (
            *("宛先不明", "あて先不明", "宛先が見つかり", "存在しない", "存在しません", "存在していません"),
            *("アドレスは見つかり", "アドレスが見つかり"),
            *("ディレクトリには見つかり", "ディレクトリのリストにあり"),
            *("ユーザーが見つかり", "ユーザは見つかり", "該当するユーザ", "ユーザ不明", "ユーザー不明"),
            *("не существует", "не найден", "неизвестный пользователь", "нет такого пользователя"),
            *("用户不存在", "收件人不存在", "用戶不存在", "不存在", "존재하지 않"),
        ),
    ),
)
# Notices that give several causes at once, in every language: recognized by a link. They outweigh any phrase.
AMBIGUOUS_NOTICES = PhraseTable(
    # Google Groups: no such group, or no permission to post.
    (FailureReason.POLICY, ("groups.google.com/support", "topic.py?topic=25838")),
)
# Standard opening and closing sentences of notices of every cause.
BOILERPLATE = re.compile(
    r"(unable|able|failed|not|n.t|trouble|error) (to )?(be )?(been )?(deliver|send|sent|reach|process)[^.:]{0,40}"
    r"(address(es)?|recipient\(?s?\)?|destinations?|people|list|groups?|message|mail)\b|"
    r"(the )?following (address|recipient|user|destination)\(?s?|this is a permanent error|"
    r"(for further assistance|if you (do so|believe|think|need)|contact your|do not reply).*|"
    r"please (contact|forward|send|do not|include|note|try).*",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class BounceClassification:
    """The cause of a bounce.

    is_permanent: rejected, not given up after temporary failures.
    is_hard: the address itself is at fault.
    line: the line of a notice that gives the reason.
    """

    reason: FailureReason
    is_permanent: bool = True
    is_hard: bool = False
    line: str = ""


def classify_bounce(
    *, status: str, code: int, diagnostic: str, quoted: SmtpStage = SmtpStage.REPORT
) -> BounceClassification:
    """Return the classification of an SMTP reply in a report, by its codes and text, and the stage in the notice."""
    found = classify(Reply(code, f"{status} {diagnostic}"), stage=SmtpStage.REPORT, quoted=quoted)
    text = normalized_text(diagnostic)
    if found.reason is FailureReason.BAD_DOMAIN and any(error in text for error in PERMANENT_DNS_ERRORS):
        return BounceClassification(FailureReason.BAD_DOMAIN, is_hard=True)
    reason = find_program_reason(text)
    if not reason or quoted is not SmtpStage.REPORT:
        return BounceClassification(found.reason, found.status is DeliveryStatus.BOUNCED, found.is_recipient_fault)
    is_permanent = not status.startswith("4") and code // 100 != 4
    return BounceClassification(reason, is_permanent, is_permanent and reason in RECIPIENT_FAULTS)


def classify_notice(notice: str) -> BounceClassification:
    """Return the classification of a notice without status codes, by the first line that matches a phrase."""
    lines = notice.splitlines()[:MAX_LINES]
    reasons = ((find(line), line) for find in (find_recipient_reason, find_message_reason) for line in lines)
    found, line = next((pair for pair in reasons if pair[0]), (None, ""))
    reason = AMBIGUOUS_NOTICES.find(notice.lower()) or found or FailureReason.UNDETERMINED
    return BounceClassification(reason, is_hard=reason in RECIPIENT_FAULTS, line=line.strip())


def stage_of_notice(notice: str) -> SmtpStage:
    """Return the stage of the first command that a notice quotes; REPORT if it quotes none."""
    lines = notice.splitlines()[:MAX_LINES]
    stages = (quoted_stage(f"{line} {following}") for line, following in pairwise([*lines, ""]))
    return next((stage for stage in stages if stage is not SmtpStage.REPORT), SmtpStage.REPORT)


def find_program_reason(text: str) -> FailureReason | None:
    """Return the reason that a mail program's phrase gives, or that of a phrase beside it that contradicts it."""
    found = PHRASES.find(text)
    if found not in RECIPIENT_FAULTS:
        return found
    return SENDER_PHRASES.find(text) or UNCERTAIN_PHRASES.find(text) or found


def find_recipient_reason(line: str) -> FailureReason | None:
    """Return the reason that a line of a notice gives about the recipient or the sender, None without one."""
    text = _without_boilerplate(line)
    return find_program_reason(text) or SENDER_PHRASES.find(text) or HOST_PHRASES.find(text) or recipient_reason(text)


def find_message_reason(line: str) -> FailureReason | None:
    """Return the reason that a line gives about the message or the network; these phrases are less specific."""
    text = _without_boilerplate(line)
    return CONTENT_PHRASES.find(text) or GENERAL_PHRASES.find(text)


def _without_boilerplate(line: str) -> str:
    return without_effects(normalized_text(BOILERPLATE.sub(" ", line[:MAX_LENGTH])))
