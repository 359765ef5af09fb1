"""Long addresses in lists: cut in the middle to the width of their place (docs/decisions/0320)."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()

# Shorter ones are shown as they are.
MAX_LENGTH = 36
# The end that stays: the domain, or of a longer one its end, behind some characters of the local part.
MAX_END = 20
LOCAL_CHARACTERS = 4


@register.filter
def short_address(text: str | None) -> SafeString | str:
    """Return an address, or a list of them, whose middle gives way in narrow places; the page has all of it."""
    text = text or ""
    if len(text) <= MAX_LENGTH:
        return format_html("<bdi>{}</bdi>", text)
    length = min(len(text) - text.rfind("@") + LOCAL_CHARACTERS, MAX_END)
    return format_html(
        '<bdi class="pr-shortened" title="{}"><span>{}</span><span>{}</span></bdi>',
        text,
        text[:-length],
        text[-length:],
    )
