"""Tag lists such as `v=DKIM1; k=rsa; p=…`, the format of DKIM keys and DMARC policies (RFC 6376, section 3.2)."""

from core.lib.coded_texts import CodedText


class InvalidTags(ValueError):
    """Raised for an invalid tag list; the message explains how to fix it."""


def parse_tags(text: str) -> dict[str, str]:
    """Return tag values by name, in order, without surrounding spaces. Raises InvalidTags."""
    tags: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not name and not equals:
            continue
        if not equals:
            raise InvalidTags(CodedText("domains.tag_without_value", part=repr(part.strip()[:40])))
        if name in tags:
            raise InvalidTags(CodedText("domains.tag_twice", tag=name[:40]))
        tags[name] = value
    return tags
