"""Judge the DKIM key that the DNS shows under a selector (RFC 6376, section 3.6.1)."""

import re
from collections.abc import Sequence

from domains.record_checks.results import RecordCheck, RecordStatus, shown
from domains.record_checks.tags import TagsInvalid, parse_tags

BLANKS = re.compile(r"\s+")


def key_value(public_key: str) -> str:
    """Return the record of a public key, DER in base64."""
    return f"v=DKIM1; k=rsa; p={public_key}"


def holds_key(text: str, public_key: str) -> bool:
    """Tell whether a text has our key, however it is dressed."""
    return public_key in BLANKS.sub("", text.replace('"', "").replace("\\", ""))


def judge_key(texts: Sequence[str], *, fqdn: str, public_key: str) -> RecordCheck:
    """Judge the texts under a selector; there is at least one."""
    error = _fault(texts, fqdn, public_key)
    note = "t=y asks receivers to treat the signature as a test; take it out." if _is_testing(texts) else None
    return RecordCheck(RecordStatus.WRONG if error else RecordStatus.RIGHT, found=shown(texts), error=error, note=note)


def _fault(texts: Sequence[str], fqdn: str, public_key: str) -> str | None:
    if len(texts) > 1:
        return f"There are {len(texts)} TXT records at {fqdn}; leave only the one shown here."
    (text,) = texts
    if holds_key(text, public_key) and ('"' in text or "\\" in text):
        return "The value holds quotation marks or backslashes; enter it without them, the DNS form adds its own."
    try:
        tags = parse_tags(text)
    except TagsInvalid as error:
        return f"The record cannot be read: {error}"
    return _wrong_tag(tags, public_key)


def _wrong_tag(tags: dict[str, str], public_key: str) -> str | None:
    """Return what keeps the first wrong tag from verifying our signatures."""
    published = BLANKS.sub("", tags.get("p", ""))
    rules = (
        ("p" not in tags, "What stands there is no DKIM key: it has no p=. Publish the whole value."),
        (published == "", "The key is revoked (p= is empty); publish the value again."),
        ("v" in tags and (tags["v"] != "DKIM1" or next(iter(tags)) != "v"), "The record must begin with v=DKIM1."),
        (tags.get("k", "rsa") != "rsa", "k= must be rsa."),
        (published != public_key, _other_key(published, public_key)),
        (not _lists(tags, "h", "sha256"), "h= leaves out sha256, which we sign with; take h= out."),
        (not _lists(tags, "s", "email", "*"), "s= leaves out email; take s= out."),
    )
    return next((sentence for is_wrong, sentence in rules if is_wrong), None)


def _other_key(published: str, public_key: str) -> str:
    if public_key.startswith(published):
        return f"The key is cut off after {len(published)} of {len(public_key)} characters; publish the whole value."
    return "The record has another key than this workspace's; replace it by the value shown here."


def _lists(tags: dict[str, str], name: str, *wanted: str) -> bool:
    return name not in tags or bool({word.strip().lower() for word in tags[name].split(":")} & set(wanted))


def _is_testing(texts: Sequence[str]) -> bool:
    return any(re.search(r";\s*t\s*=\s*([^;]*:)?\s*y\s*(:|;|$)", text) for text in texts[:1])
