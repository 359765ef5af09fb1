"""Words of the documentation search: stems, stop words, synonyms, and words that differ by one character.

See docs/decisions/0213.
"""

import re
import unicodedata
from collections.abc import Iterator

# "scheduledFor" and "recipient_suppressed" are also found by their parts.
WORD = re.compile(r"[a-z0-9]+")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
IDENTIFIER = re.compile(r"\b[A-Za-z0-9]+(?:_[A-Za-z0-9]+)+\b|\b[a-z0-9]+(?:[A-Z][a-z0-9]+)+\b")
MIN_FUZZY_LENGTH = 4
MIN_STEM_LENGTH = 3
VOWELS = re.compile(r"[aeiouy]")
# Their endings are not those of a plural or of a verb.
UNCHANGED = {
    "address", "always", "access", "alias", "analytics", "aws", "bcc", "canvas", "django", "dns", "gas", "https",
    "kubernetes", "news", "postgres", "rails", "redis", "sends", "setting", "sns", "status", "this", "tls",
}  # fmt: skip
IRREGULAR = {"sent": "send", "settings": "setting", "sends": "send", "got": "get", "written": "write"}
# From the ending of a noun in a query to the stem of its verb: "configuration" also finds "configure".
DERIVED = (
    "ications",
    "ication",
    "ations",
    "ation",
    "ions",
    "ion",
    "ments",
    "ment",
    "ability",
    "ors",
    "er",
    "ers",
    "or",
)
COMMON = """
a about all am an and any are as at be been but by can cannot could did do does for from get go had has have
how i if in into is it its just like make me my need no not of on or our please should so some that the their
them then there these they this to us use using want was way we what when where which who why will with would
you your
"""
STOP_WORDS = frozenset(COMMON.split())
# Words of one line find each other. A line may have words that no page uses.
SYNONYMS = (
    "email mail message",
    "schedule later future delay postpone cron",
    "attachment attach file upload pdf",
    "size limit maximum max large big",
    "webhook callback hook notification",
    "key token credential secret",
    "unsubscribe optout",
    "spam junk deliverability inbox",
    "complaint complain feedback fbl arf",
    "bounce undeliverable reject refuse",
    "cause reason",
    "retry repeat attempt backoff",
    "blocklist blacklist dnsbl rbl spamhaus block",
    "ptr reverse rdns",
    "install setup deploy host",
    "docker compose container podman",
    "kubernetes k8s helm kustomize",
    "debian ubuntu systemd",
    "upgrade update version",
    "changelog release news",
    "backup restore dump snapshot recovery",
    "setting environment variable env config configuration option",
    "receive inbound incoming reply",
    "template handlebars mustache liquid mjml",
    "batch bulk mass many blast",
    "simulator sandbox test fake",
    "test ci pytest jest",
    "error failure problem troubleshoot",
    "rate throttle 429",
    "monitor metric prometheus grafana alert observability",
    "alert alarm threshold notify warning",
    "move migrate migration switch import",
    "privacy gdpr erase dsgvo",
    "exim postfix sendmail smarthost relay",
    "cli command terminal shell",
    "rails ruby actionmailer",
    "laravel symfony php",
    "spring java kotlin jakarta",
    "javascript typescript nodejs node",
    "nextjs react vercel",
    "django python flask fastapi",
    "image picture inline cid logo",
    "open pixel",
    "analytics statistic stat report chart",
    "warmup warm ramp",
    "suppression suppress optout",
    "tls ssl certificate https starttls",
    "scaling cluster failover availability replica",
    "sso oidc openid saml keycloak okta entra",
    "member team user invite role",
    "password login authentication signin",
    "workspace tenant account organization",
    "idempotency duplicate twice",
    "performance speed fast throughput benchmark",
    "event log history timeline",
    "mcp claude assistant llm ai",
    "postmaster snds",
    "started start tutorial begin quickstart introduction",
    "dkim signature",
    "2fa mfa totp factor passkey",
    "stream topic category preference",
    "header custom",
    "tag label metadata",
)


def words_of(text: str) -> list[str]:
    """Return the words of a text, those of identifiers, and each identifier as one word."""
    names = IDENTIFIER.findall(_without_accents(text))
    return [*single_words(text), *(name.replace("_", "").lower() for name in names)]


def single_words(text: str) -> list[str]:
    """Return the words of a text in lower case and without accents."""
    return WORD.findall(CAMEL.sub(" ", _without_accents(text)).lower().replace("e-mail", "email"))


def query_words(text: str) -> list[str]:
    """Return the words of a query without stop words, unless it has no others."""
    words = words_of(text)
    return [word for word in words if word not in STOP_WORDS] or words


def stem(word: str) -> str:
    """Return a word without the endings of plural, past and continuous form; `schedul` for scheduled and schedules."""
    if word in IRREGULAR:
        return IRREGULAR[word]
    if len(word) <= MIN_STEM_LENGTH or word in UNCHANGED:
        return word
    word = _without_verb_ending(_without_plural(word))
    return word[:-1] if word.endswith("e") and len(word) > MIN_STEM_LENGTH else word


def verb_stems(word: str) -> Iterator[str]:
    """Yield the stems of the verbs from which a noun may be derived."""
    for ending in DERIVED:
        if word.endswith(ending) and len(word) - len(ending) > MIN_STEM_LENGTH:
            yield stem(word.removesuffix(ending))


def synonyms_of(stemmed: str) -> frozenset[str]:
    return _SYNONYMS.get(stemmed, frozenset())


def differ_by_one_character(first: str, second: str) -> bool:
    """Return whether one character is missing, added or replaced, or two neighbours are exchanged."""
    if abs(len(first) - len(second)) > 1 or min(len(first), len(second)) < MIN_FUZZY_LENGTH - 1:
        return False
    start = _common_start(first, second)
    left, right = first[start:], second[start:]
    exchanged = left[1:2] + left[:1] + left[2:]
    return left[1:] == right[1:] or left[1:] == right or left == right[1:] or exchanged == right


def _without_accents(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


def _common_start(first: str, second: str) -> int:
    return next((index for index, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
                min(len(first), len(second)))  # fmt: skip


def _without_plural(word: str) -> str:
    if word.endswith(("ies", "ied")):
        return f"{word[:-3]}y"
    if word.endswith("sses"):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_verb_ending(word: str) -> str:
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) >= MIN_STEM_LENGTH and VOWELS.search(rest) and not word.endswith("eed"):
            is_doubled = rest[-1] == rest[-2] and rest[-1] not in "lsz"
            return rest[:-1] if is_doubled else rest
    return word


def _synonyms() -> dict[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in SYNONYMS:
        stems = {stem(word) for word in line.split()}
        for one in stems:
            found.setdefault(one, set()).update(stems - {one})
    return {one: frozenset(others) for one, others in found.items()}


_SYNONYMS = _synonyms()
