"""DKIM key records: the value to publish, and the check of the published one (RFC 6376, section 3.6.1)."""

import re
from collections.abc import Sequence

from core.lib.coded_texts import CodedText
from domains.record_checks.record_lookup import RecordLookup
from domains.record_checks.results import RecordCheck, RecordStatus, join_texts
from domains.record_checks.tags import InvalidTags, parse_tags

SPACES = re.compile(r"\s+")


def build_dkim_record(public_key: str) -> str:
    """Return the record value for a public key (DER, base64)."""
    return f"v=DKIM1; k=rsa; p={public_key}"


async def check_dkim(lookup: RecordLookup, *, fqdn: str, public_key: str) -> RecordCheck:
    """Check the key record of a selector. Raises DnsError."""
    texts = await lookup.dns.look_up_texts(fqdn)
    if not texts:
        return await lookup.missing(
            fqdn,
            kind="TXT",
            is_expected=lambda text: _contains_key(text, public_key),
            message=CodedText("domains.no_txt", name=fqdn),
        )
    error = _find_error(texts, fqdn, public_key)
    status = RecordStatus.INVALID if error else RecordStatus.VALID
    note = None if error or not _is_test(texts[0]) else CodedText("domains.dkim_test")
    return RecordCheck(status, found=join_texts(texts), error=error, note=note)


def _contains_key(text: str, public_key: str) -> bool:
    """Check for the public key in a text, ignoring spaces, quotation marks and backslashes."""
    return public_key in SPACES.sub("", text.replace('"', "").replace("\\", ""))


def _find_error(texts: Sequence[str], fqdn: str, public_key: str) -> str | None:
    if len(texts) > 1:
        return CodedText("domains.dkim_several", count=len(texts), name=fqdn)
    (text,) = texts
    if _contains_key(text, public_key) and ('"' in text or "\\" in text):
        return CodedText("domains.dkim_quotes")
    try:
        tags = parse_tags(text)
    except InvalidTags as error:
        return CodedText("domains.invalid_record", error=error)
    return _find_tag_error(tags, public_key)


def _find_tag_error(tags: dict[str, str], public_key: str) -> CodedText | None:
    """Return the error of the first tag that prevents signatures from being verified."""
    published = SPACES.sub("", tags.get("p", ""))
    rules = (
        ("p" not in tags, CodedText("domains.dkim_no_key")),
        (published == "", CodedText("domains.dkim_revoked")),
        ("v" in tags and (tags["v"] != "DKIM1" or next(iter(tags)) != "v"), CodedText("domains.dkim_version")),
        (tags.get("k", "rsa") != "rsa", CodedText("domains.dkim_algorithm")),
        (published != public_key, _key_mismatch(published, public_key)),
        (not _allows(tags, "h", "sha256"), CodedText("domains.dkim_hashes")),
        (not _allows(tags, "s", "email", "*"), CodedText("domains.dkim_services")),
    )
    return next((error for is_invalid, error in rules if is_invalid), None)


def _key_mismatch(published: str, public_key: str) -> CodedText:
    if public_key.startswith(published):
        return CodedText("domains.dkim_truncated", count=len(published), all=len(public_key))
    return CodedText("domains.dkim_other_key")


def _allows(tags: dict[str, str], name: str, *wanted: str) -> bool:
    return name not in tags or bool({value.strip().lower() for value in tags[name].split(":")} & set(wanted))


def _is_test(text: str) -> bool:
    """Check a valid record for the flag of test keys."""
    return "y" in {flag.strip() for flag in parse_tags(text).get("t", "").split(":")}
