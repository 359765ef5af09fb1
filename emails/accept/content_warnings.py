"""Warnings about the content of accepted emails: valid requests that are probably mistakes."""

from collections.abc import Mapping
from typing import NotRequired, TypedDict

from core.delivery.message.footer import UNSUBSCRIBE_PLACEHOLDER
from core.delivery.message.html import MAX_TRACKED_LINKS, has_untracked_links
from core.delivery.message.text import visible_length
from core.delivery.message.unsubscribe_places import has_link, has_placeholder, read_html, with_plain_places
from templates_app.content import RenderedContent


class ContentWarning(TypedDict):
    """A warning in a response.

    variables: the template variables without a value.
    variable: in a batch, one of them, with the indexes of the recipients.
    locale: the language without texts; in a batch with the indexes of the recipients.
    """

    code: str
    message: str
    variables: NotRequired[list[str]]
    variable: NotRequired[str]
    indexes: NotRequired[list[int]]
    locale: NotRequired[str]


Warnings = list[ContentWarning]

# Below this, spam filters suspect that an image replaces the text (SpamAssassin: HTML_IMAGE_ONLY_12).
LITTLE_TEXT = 1200
# Reading so much HTML without finding text takes up to 25 ms.
READ_FOR_TEXT = 64 * 1024

MISSING = ContentWarning(
    code="missing_template_variables",
    message="The data has no value for this template variable; it was rendered as an empty string.",
)
LOCALE_MISSING = ContentWarning(
    code="locale_missing",
    message="The template has no texts in this language; another of its languages was used.",
)
CONTENT_IGNORED = ContentWarning(
    code="content_ignored", message="html and text come from the template. Those of the request were ignored."
)
DATA_UNUSED = ContentWarning(code="template_data_unused", message="templateData has no effect without templateId.")
LOW_TEXT_RATIO = ContentWarning(
    code="low_text_ratio",
    message=f"The HTML has images and fewer than {LITTLE_TEXT:,} characters of text, which spam filters mistrust. "
    "Write more text, link words rather than images, and set trackOpens to false, since its pixel is an image, too.",
)
LINKS_UNTRACKED = ContentWarning(
    code="links_untracked",
    message=f"The HTML has more than {MAX_TRACKED_LINKS} links. The first {MAX_TRACKED_LINKS} are tracked, the "
    "others stay unchanged.",
)
PLACEHOLDER_UNUSED = ContentWarning(
    code="unsubscribe_placeholder_unused",
    message=f"{UNSUBSCRIBE_PLACEHOLDER} is neither the target of a link nor visible text, so the recipient could not "
    "follow it. The link is in the footer instead, unless the stream has none. Write "
    f'<a href="{UNSUBSCRIBE_PLACEHOLDER}">.',
)


def content_warnings(content: RenderedContent, *, has_tracked_links: bool) -> Warnings:
    """Return the warnings about rendered HTML and text."""
    conditions = (
        (LOW_TEXT_RATIO, _has_little_text(content.html)),
        (LINKS_UNTRACKED, has_tracked_links and has_untracked_links(content.html)),
        (PLACEHOLDER_UNUSED, _has_unused_placeholder(content)),
    )
    return [warning for warning, applies in conditions if applies]


def missing_variable_warnings(missing: Mapping[str, list[int]] | tuple[str, ...]) -> Warnings:
    """Return warnings about variables without a value; in a batch, one per variable with recipient indexes."""
    if isinstance(missing, tuple):
        return [MISSING | {"variables": list(missing)}] if missing else []
    return [MISSING | {"variable": name, "indexes": indexes} for name, indexes in missing.items()]


def is_other_language(asked: str | None, used: str | None) -> bool:
    """Return whether the texts are in another language than the one that was asked for; `de` serves `de-AT`."""
    return bool(asked) and (asked or "").partition("-")[0] != (used or "").partition("-")[0]


def locale_warnings(missing: Mapping[str, list[int]]) -> Warnings:
    """Return warnings about languages that the template of a batch lacks, with recipient indexes."""
    return [LOCALE_MISSING | {"locale": locale, "indexes": indexes} for locale, indexes in missing.items()]


def _has_unused_placeholder(content: RenderedContent) -> bool:
    """Return whether a part has the placeholder, and only where a recipient cannot follow the link."""
    if has_placeholder(content.html) and not read_html(content.html)[1]:
        return True
    return has_placeholder(content.text) and not has_link(with_plain_places(content.text))


def _has_little_text(html: str) -> bool:
    """Return whether the HTML shows images and little text; the tracking pixel alone does not count."""
    if "<img" not in html.lower():
        return False
    return visible_length(html[:READ_FOR_TEXT], at_most=LITTLE_TEXT) < LITTLE_TEXT
