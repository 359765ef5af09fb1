"""Tag lists, `v=DKIM1; k=rsa; p=…`: the form that DKIM keys and DMARC policies share (RFC 6376, section 3.2)."""


class TagsInvalid(ValueError):
    """Raised with a sentence that says what to change."""


def parse_tags(text: str) -> dict[str, str]:
    """Return tags by name, in order, blanks around them dropped. Raises TagsInvalid."""
    tags: dict[str, str] = {}
    for part in text.split(";"):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not name and not equals:
            continue
        if not equals:
            raise TagsInvalid(f"{part.strip()[:40]!r} has no =; tags are written name=value and parted by semicolons.")
        if name in tags:
            raise TagsInvalid(f"{name[:40]}= stands twice; leave one.")
        tags[name] = value
    return tags
