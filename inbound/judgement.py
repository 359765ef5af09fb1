"""Why a report was written, from its codes and its words: is the recipient's address at fault?

Words come before codes: 5.1.1 is answered for full mailboxes and for blocked senders, too, and most of what
was written before RFC 3463 has no code at all. Careful before broad: what speaks of anything but the
address (DECISIVE) is never a fault of the recipient, whatever else it says.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

MAX_CHARACTERS = 1_500
MAX_TEXT_CHARACTERS = 6_000

HARD = frozenset({"unknown_user", "inactive", "bad_domain", "bad_address", "rejected"})


@dataclass(frozen=True)
class Judgement:
    """reason: a word of delivery.reasons. is_hard: the address is at fault."""

    reason: str
    is_hard: bool = False


UNDETERMINED = Judgement("undetermined")


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns))


# In this order; the first that matches decides. Patterns see lower case and single spaces.
DECISIVE: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "mailbox_full",
        _any(
            r"quota",
            r"(mailbox|mail box|inbox|mailfolder|mail folder|account|user|postfach|storage)[^.]{0,60} (is|ist) (over|full|voll|too full)\b",
            r"(mailbox|inbox|mailfolder|account|user|storage)[^.]{0,40} full\b",
            r"\bfull (mailbox|inbox)",
            r"exceed\w* [^.]{0,40}(storage|space|allocat|mailbox|allowed size|allowed limit|disk)",
            r"mailbox[^.]{0,40} exceed",
            r"(storage|disk) ?space",
            r"(insufficient|not enough|out of|no more|over its|exhausted)[^.]{0,20} (storage|space|disk|allowed)",
            r"mailbox size limit",
            r"too (many|much) (messages|mail) (in|stored)",
            r"boîte [^.]{0,40}pleine",
            r"buzón [^.]{0,20}lleno",
            r"casella [^.]{0,20}piena",
            r"メールボックス.{0,12}(いっぱい|一杯|満杯|容量)",
            r"容量.{0,8}(超|オーバー)",
            r"邮箱.{0,6}满",
            r"почтовый ящик.{0,20}переполнен",
        ),
    ),
    (
        "too_large",
        _any(
            r"(message|mail|e-mail|content|data|attachment)s?( \w+)? (is |are |was )?too (large|big|long)",
            r"(message|mail|e-mail|content)('s)?( file)? (size|length)[^.]{0,30} (exceed|over|limit|too|larger)",
            r"exceed\w*[^.]{0,40}(message|mail|maximum|max\.?|fixed) [^.]{0,20}(size|length)",
            r"(message|mail) size limit",
            r"size limit exceeded",
            r"too large",
            r"larger than the (current|maximum)",
        ),
    ),
    (
        "greylisted",
        _any(r"gr[ea]y-?list"),
    ),
    (
        "blocklisted",
        _any(
            r"\bblack-?list",
            r"black hole",
            r"\bblock-? ?list",
            r"\bdnsbl\b",
            r"\brbls?\b",
            r"spamhaus",
            r"spamcop",
            r"\bsorbs\b",
            r"cloudmark",
            r"proofpoint\.com/(dnsbl|ipcheck)",
            r"barracuda (reputation|networks)",
            r"(\bips?\b|host|mails?|messages?|sender|connections?|server|domain|client|network|you are|you have been|been)( \w+| [\[<(]?[\w.:@-]+[\])>]?){0,4} (blocked|banned)\b",
            r"\bblocked (by|using|for|due|because|from)\b",
            r"access from [^.]{0,30}denied",
            r"banned",
        ),
    ),
    (
        "authentication",
        _any(
            r"\bdmarc\b",
            r"\bspf\b",
            r"\bdkim\b",
            r"sender[- ]id\b",
            r"domainkeys",
            r"unauthenticated",
            r"not (been )?authenticated",
            r"authentication (is )?(required|failed|failure|credentials)",
            r"(requires?|needs?|must) authenticat",
        ),
    ),
    (
        "reverse_dns",
        _any(r"reverse[- ](dns|lookup|hostname|address|name)", r"\bptr\b", r"\brdns\b", r"\bhelo\b[^.]{0,40}(reject|invalid|not|denied|mismatch)"),
    ),
    (
        "virus",
        _any(r"\bvirus", r"malware", r"infected", r"trojan", r"\bworm\b", r"phish"),
    ),
    (
        "spam",
        _any(
            r"\bspam(?!\w*\.(com|net|org))",
            r"unsolicited",
            r"\bjunk\b",
            r"bulk (e-?)?mail",
            r"\bscored? ",
            r"reputation",
            r"suspicious",
            r"spammer",
            r"迷惑メール",
            r"content filter",
        ),
    ),
    (
        "relay_denied",
        _any(r"\brelay(ing)?\b", r"not (a )?(local|one of our) (host|domain)", r"no relaying", r"rcpthosts", r"\bopen proxy"),
    ),
    (
        "policy",
        _any(
            r"sender('s)?( e-?mail)?( address| domain| host| ip| id| name)? [^.]{0,40}(reject|denied|unknown|blocked|not |does|verif|invalid|refus|doesn|unresolv|unable|must|cannot|couldn)",
            r"(reject\w*|denied|unknown|invalid|bad|unverified|verify|verification of|refused|forged|fake) [^.]{0,10}\b(sender|envelope|return path|from address|originator|mail from)\b",
            r"domain of (the )?sender",
            r"\b(sender|sending) (address|domain|host|server|ip)",
            r"(verif\w+|call-?out|callback) [^.]{0,30}fail",
            r"your (ip|domain|server|host|network|isp|provider|mail server|account|reputation)",
            r"not (been )?(authori[sz]ed|permitted|allowed|accepted for delivery) (to|from|by|for|due)",
            r"(you|sender|user)[^.]{0,10} (are|is|do|does)( not|n.t) (allowed|authori[sz]ed|permitted|have permission)",
            r"restrict",
            r"permission",
            r"authrequired",
            r"only accepts? (mail|e-?mail|messages)? ?from",
            r"(policy|policies)\b",
            r"administrative(ly)? (prohibit|lock|block|refus|reject|den)",
            r"prohibited",
            r"not accepting (mail|messages)? ?from",
            r"(message|mail|content|attachment|header|subject|body)s?( was| has been| is)?( \w+){0,2} (rejected|refused|denied|filtered|not accepted|discarded|quarantined)",
            r"rejected (by|due to|because of|for) [^.]{0,30}(filter|rule|content|header|your|local|security|system|recipient preference)",
            r"(attachment|file)s? [^.]{0,30}(not allowed|type|blocked|removed|forbidden)",
            r"(white|allow)-?list",
            r"confirm",
            r"moderat",
            r"non-?members?\b",
            r"subscri",
            r"mailing list",
            r"the group you tried to contact",
            r"encrypt",
        ),
    ),
    (
        "rate_limited",
        _any(
            r"too many (?!hops)(\w+ )?(connections|messages|recipients|mails|emails|errors|sessions|concurrent|requests|bad|invalid|unknown|rcpt)",
            r"rate[- ]?(limit|control)",
            r"throttl",
            r"(sending|receiving) (limit|rate|mail at a rate|too)",
            r"limit (has been )?(reached|exceeded)",
            r"exceed\w* [^.]{0,40}(limit|rate|number of)",
        ),
    ),
    (
        "routing_loop",
        _any(r"too many hops", r"\bloops?\b", r"\blooping\b", r"hop ?count", r"loops? back", r"circular", r"maximum hops"),
    ),
    (
        "expired",
        _any(
            r"(message|mail|e-mail|delivery time|queue|retry|lifetime)( time)?( has| was| is)?( \w+)? (expired|timed out|timeout exceeded|too long in)",
            r"retry time(out)? (not reached|exceeded)",
            r"in the queue too long",
            r"queue too long",
            r"too old",
            r"delivery (attempts?|period)[^.]{0,20} (exceeded|expired|exhausted)",
            r"(not|been unable to) (be )?deliver(ed)? (for|within|after) [^.]{0,20}\b(\d+|several|many) ?(hour|day|minute|attempt|tries)",
            r"undeliverable for|has been failing for|have been failing",
            r"giving up after|gave up|too many (delivery )?(attempts|retries)|failed \d+ attempts",
        ),
    ),
    (
        "host_trouble",
        _any(
            r"try (it |sending |your message |again |this )*(again|later)\b(?!.{0,30}(typo|double))",
            r"temporar(y|ily)",
            r"\bservers? (is |are )?(too )?(busy|down|error|overload)",
            r"(service|system|resources?|server)s? (is |are |was |currently )?(not available|unavailable|not accepting|shutting)",
            r"(internal|configuration|local|processing|database|software|system|server|lookup|ldap)( \w+)? (error|failure|problem)",
            r"insufficient system",
            r"cannot (update|open|create|write|append)|can.?t (open|create|write|append)",
            r"defer(red|ral)",
            r"delivery[^.]{0,10} suspended",
            r"not available at this time|currently (not available|unavailable)",
            r"command (not|un)(recogni[sz]ed| implemented)",
        ),
    ),
    (
        "network",
        _any(
            r"(connection|connect|session|conversation)( to| with)?( \S+){0,3} (timed out|refused|reset|lost|dropped|closed|failed|broken|timeout)",
            r"time(d|s)?[- ]?out",
            r"no route to host",
            r"network (is )?(unreachable|error|problem)",
            r"(could not|couldn.t|cannot|can't|unable to|wasn.t able to) (connect|establish|contact)",
            r"connection refused",
            r"host (is )?unreachable|unreachable",
            r"failed to connect|not (currently )?responding|did ?n.t respond|does not respond",
            r"\b(ssl|tls|starttls|certificate)\b",
            r"dns (lookup |server )?(timeout|failure|temporar|soft)",
            r"(lookup|resolution)[^.]{0,20} (timed|temporar|try)",
            r"servfail|server failure",
        ),
    ),
)

# What says that the address is at fault.
FAULTS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "inactive",
        _any(
            r"(account|user|mailbox|recipient|address|e-?mail|login|customer|owner|subscriber|receiver)\b[^.!]{0,60} (is |been |was |has |currently |temporarily )*(disabled|suspended|inactive|inactivated|deactivated|de-activated|closed|terminated|expired|locked|deleted|removed|cancell?ed|blocked|dormant|frozen|discontinued|abandoned|retired|decommissioned|disconnected|no longer active|not active|not activated)",
            r"(disabled|inactive|suspended|deactivated|closed|expired|terminated|deleted) (user|mailbox|account|recipient|address|e-?mail)",
            r"no longer (in use|active|used|works?|working|accept|receiv|monitored|operational|reading)",
            r"inactive-mailbox",
            r"mailbox (is )?inactive",
            r"postfach [^.]{0,20}(gesperrt|deaktiviert|geschlossen)",
            r"compte [^.]{0,20}(désactivé|fermé|suspendu)",
            r"アカウント.{0,10}(停止|無効|削除)",
        ),
    ),
    (
        "bad_domain",
        _any(
            r"(host|domain)( or (host|domain))?( name)?\b[^.]{0,50} (not found|unknown|not exist|nonexist|non-exist|is invalid|not be found|not be resolved|not registered|isn.t registered)",
            r"(unknown|invalid|illegal|no such|bad|non-?existent|unresolvable|unrouteable|unroutable|undefined) (mail )?(domain|host)",
            r"domain (name )?[^.]{0,80}(does not|doesn.t|does ?n.t|do not|did not) (appear to )?(exist|be registered|resolve|have)",
            r"(domain|host)( name)? [^ ]{1,80} (does not|doesn.t|did not) (appear to )?(exist|be|resolve)",
            r"couldn.t find any host|could not find any host|cannot find (any|your) (host|destination)",
            r"couldn.t find a mail exchanger|no (valid )?(mx|mail exchanger?)s?( record)?s?( or|\b[^.]{0,20} found| for|$)",
            r"no mx (found|record|host)",
            r"(all )?relevant mx records point to non-existent",
            r"\bnx ?domain\b",
            r"name or service not known",
            r"host not found",
            r"host unknown",
            r"null ?mx",
            r"(domain|host|recipient domain|server)[^.]{0,60}(does not|doesn.t|never) accepts? (any )?(mail|e-?mail|messages)",
            r"dns (hard )?error",
            r"has no mail exchanger|no mail servers? (for|found)",
            r"bad-domain",
            r"no route found to domain",
            r"domain not found|domain[^.]{0,30} could not be found",
            r"could not resolve|cannot resolve|unable to resolve|can.t resolve",
            r"bad destination system",
            r"bad destination host",
            r"domain ?(is )?(unbekannt|existiert nicht)",
            r"domaine [^.]{0,30}(inconnu|n.existe pas)",
            r"ドメイン.{0,10}(存在|見つか)",
        ),
    ),
    (
        "unknown_user",
        _any(
            r"user\.? ?(is )?unknown",
            r"unknown[ _:-]+(local[ -])?(virtual )?(user|recipient|mailbox|e-?mail|account|address|local[- ]?part|alias|addressee|login|rcpt|member|to\b)",
            r"(recipient|mailbox|account|address|addressee|alias|login|local[- ]?part|e-?mail|rcpt|user ?name|user ?id|customer|resident|member|subscriber|receiver)s?\b[^.!]{0,80} (is |was )?(un-?known|unrecogni[sz]ed|unrouteable)",
            r"no such (local |virtual )?(user|recipient|mailbox|address|account|person|e-?mail|alias|customer|destination|member|name|subscriber|id\b|addressee|login)",
            r"(user|recipient|mailbox|account|address|alias|e-?mail|rcpt|name|person|login|id|member|customer|destination|receiver)\b[^!]{0,120}?(does ?n.t|does not|do not|don.t|did not|not) (currently |actually )?exists?",
            r"not exist",
            r"n.t exist",
            r"non-?exist",
            r"inexist",
            r"(user|recipient|mailbox|account|address|alias|e-?mail|name|addressee|person|login|destination|member)\b[^!]{0,120}? (could |can |was |were |is |are |has |been |be )*(not|n.t|never|un)( be| been)? ?(found|listed|locat|known|recogni[sz]ed|registered|present in|resolved|valid\b|identified|matched|provisioned|handled|hosted)",
            r"not a (known|valid|registered|recogni[sz]ed|local) (user|recipient|mailbox|account|address|e-?mail|customer|alias|subscriber)",
            r"(not|n.t) (an? )?(valid|known|existing|registered|active|our|local) (user|recipient|mailbox|account|address|e-?mail|customer|subscriber|alias)",
            r"(in-?valid|bad|illegal|incorrect|wrong|unresolvable|unrouteable|unroutable|undeliverable|malformed|unrecogni[sz]ed)[ _:-]+(final delivery )?(local |destination |e-?mail |mailbox |smtp |mail |o/r )?(user|recipient|mailbox|account|address|e-?mail|rcpt|local[- ]?part|name|alias|login|to\b|userid|to address|or-?name)",
            r"(recipient|address|mailbox|account|user|e-?mail)( \w+)? (is )?(invalid|illegal|incorrect|bad|unroutable|unrouteable)\b",
            r"unrouteable (mail )?address|unroutable (mail )?address",
            r"(no|without a) (mailbox|user|account|recipient|valid mailbox|e-?mail) (here|by|with|found|of|named|at|exists|for)\b",
            r"\bno (mailbox|mail ?box|account|such user|user)\b",
            r"does(n.t| not) have an? [^.]{0,40}(account|mailbox|address)",
            r"has no (account|mailbox|valid)",
            r"(no longer|does not|doesn.t|isn.t|not) (a )?(available|valid|an? active|at this (address|domain|host|site|server)|here|with us|exists?|employed|on (this|our) server|hosted|a customer|our customer|work|have access)",
            r"not (our|a) (customer|user)",
            r"not (found|known|listed|present) (at|in|on|by|here)",
            r"(was|were|is|are)(n.t| not) found (at|in|on|here)",
            r"not listed in (the )?(public name|domino|public address|directory|name)",
            r"(address|mailbox|recipient|user|account) (was |is )?not (be )?found",
            r"couldn.t be found|could not be found",
            r"(name|recipient name) [^.]{0,20}not recogni[sz]ed",
            r"requested action not taken: ?(mailbox unavailable|no such)",
            r"resolver\.adr\.(ex)?(recipnotfound|recipientnotfound|invalidsmtp|badprimary)",
            r"recipnotfound|recipientnotfound",
            r"bad-mailbox",
            r"(user|recipient) has moved|has moved to|moved permanently|address (has )?changed|new address",
            r"user not local",
            r"no one here by|nobody here by|nobody by that name|don.t know (the|any|that|who)|never heard of",
            r"please check the recipient|check the (recipient|e-?mail|spelling)|typo",
            r"recipient unknown|unknown recipient",
            r"recipient (address )?(is )?reserved",
            r"the account or domain may not exist",
            r"delivery failed: (unknown|no such|invalid)",
            r"empfänger[^.]{0,30}(unbekannt|nicht gefunden|existiert nicht|ungültig)|unbekannter (empfänger|benutzer|nutzer)|(benutzer|adresse|postfach|konto|mailadresse)[^.]{0,40}(unbekannt|existiert nicht|nicht gefunden|nicht vorhanden|ungültig|gibt es nicht)|existiert nicht",
            r"(utilisateur|destinataire|adresse|compte|boîte)[^.]{0,40}(inconnue?|n.existe pas|introuvable|invalide|inexistante?)|n.existe pas|pas trouvée?",
            r"(usuario|destinatario|dirección|cuenta|buzón)[^.]{0,40}(desconocid|no existe|no encontrad|inexistente)|no existe",
            r"(destinatario|utente|indirizzo|casella)[^.]{0,40}(sconosciut|inesistent|non esiste|non valid)|non esiste",
            r"(usuário|destinatário|endereço|conta)[^.]{0,40}(desconhecid|inexistente|não existe|não encontrad)|não existe",
            r"宛先不明|あて先不明|宛先が(不明|見つ)|存在しない|存在しません|存在していません|見つかりません|該当.{0,8}(ありません|いません)|ユーザー?.{0,4}不明",
            r"не существует|не найден|неизвестный пользователь|нет такого",
            r"用户不存在|收件人不存在|不存在|找不到(用户|收件)|用戶不存在|존재하지 않|없는 계정",
        ),
    ),
)

# Codes decide where the words do not. RFC 3463 and the registry of RFC 5248.
STATUS_REASONS = {
    "1.1": "unknown_user",
    "1.2": "bad_domain",
    "1.3": "bad_address",
    "1.4": "bad_address",
    "1.6": "unknown_user",
    "1.7": "policy",
    "1.8": "policy",
    "1.10": "bad_domain",
    "2.1": "inactive",
    "2.2": "mailbox_full",
    "2.3": "too_large",
    "2.4": "policy",
    "3.1": "host_trouble",
    "3.2": "host_trouble",
    "3.4": "too_large",
    "4.1": "network",
    "4.2": "network",
    "4.3": "dns",
    "4.4": "bad_domain",
    "4.6": "routing_loop",
    "4.7": "expired",
    "5.2": "protocol",
    "5.3": "too_many_recipients",
    "6.7": "smtputf8_required",
    "7.0": "policy",
    "7.1": "policy",
    "7.2": "policy",
    "7.13": "inactive",
    "7.17": "unknown_user",
    "7.18": "bad_domain",
    "7.20": "authentication",
    "7.23": "authentication",
    "7.25": "reverse_dns",
    "7.26": "authentication",
    "7.27": "bad_domain_of_sender",
}
CODE_REASONS = {521: "bad_domain", 525: "inactive", 551: "unknown_user", 552: "mailbox_full", 553: "bad_address", 556: "bad_domain"}

# Exchange Online's answer for an address that its directory does not hold; it speaks of access alone.
NOT_IN_DIRECTORY = re.compile(r"5\.4\.1.{0,40}recipient address rejected: access denied")
# A host that names the address and says no more: at RCPT that is the address.
BARE_REFUSAL = re.compile(r"(recipient|address)( address)? (is )?(rejected|refused|denied)|does not like recipient|invalid recipient")
SPACE = re.compile(r"\s+")
# What each host writes in front of what it means, and what it invites to read; both lead astray.
ADDRESSES = re.compile(r"<[^<>\s@]{0,64}@[^<>\s]{0,255}>|https?://\S{1,300}")


def judge(*, status: str, code: int, diagnostic: str) -> Judgement:
    """Return why a host refused, by what it said: its words first, then its codes."""
    text = _prepared(diagnostic)[:MAX_CHARACTERS]
    if status.startswith("4") or (not status and 400 <= code < 500):
        return Judgement(_word(text) or STATUS_REASONS.get(status[2:], "undetermined"))
    reason = _exception(status, text) or _word(text) or _by_code(status, code, text)
    return Judgement(reason, reason in HARD)


def judge_text(text: str) -> Judgement:
    """Return why a notice without a diagnosis was written; one that lists several causes says nothing."""
    prepared = _prepared(text)[:MAX_TEXT_CHARACTERS]
    if any(pattern.search(prepared) for _, pattern in DECISIVE):
        return Judgement(_word(prepared) or "undetermined")
    reason = _first(FAULTS, prepared) or "undetermined"
    return Judgement(reason, reason in HARD)


def has_words(line: str) -> bool:
    """Say whether a line holds anything that this module would go by."""
    return bool(_word(_prepared(line[:MAX_CHARACTERS])))


def _prepared(text: str) -> str:
    return SPACE.sub(" ", ADDRESSES.sub(" ", text[: 2 * MAX_TEXT_CHARACTERS])).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")


def _exception(status: str, text: str) -> str:
    return "unknown_user" if NOT_IN_DIRECTORY.search(f"{status} {text}") else ""


def _word(text: str) -> str:
    return _first(DECISIVE, text) or _first(FAULTS, text)


def _first(table: tuple[tuple[str, re.Pattern[str]], ...], text: str) -> str:
    return next((reason for reason, pattern in table if pattern.search(text)), "")


def _by_code(status: str, code: int, text: str) -> str:
    return next(_code_reasons(status, code, text), "undetermined")


def _code_reasons(status: str, code: int, text: str) -> Iterator[str]:
    if status[2:] in STATUS_REASONS:
        yield STATUS_REASONS[status[2:]]
    if BARE_REFUSAL.search(text):
        yield "rejected"
    if code in CODE_REASONS and not status:
        yield CODE_REASONS[code]
