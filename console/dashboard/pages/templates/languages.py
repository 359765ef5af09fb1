"""Languages in the template editor: their texts in a form, and their names (docs/decisions/0341)."""

from collections.abc import Iterable, Mapping

from django.conf.locale import LANG_INFO
from django.utils.translation import get_language_info

from templates_app.content import PARTS
from templates_app.language.locales import normalize_locale

# Field on the wire → part.
WIRE_PARTS = {wire: part for part, wire in PARTS.items()}
# Instead of a tag, in the fields that the script copies for a new language.
NEW = "__locale__"


def field_name(part: str, locale: str) -> str:
    """Return the name of the field of a text. locale: empty for the texts of the template itself."""
    return f"{part}-{locale}" if locale else part


def inherits_name(locale: str) -> str:
    """Return the name of the field that says whether an empty text is that of the template itself."""
    return f"inherits-{locale}"


def field_of_wire(name: str) -> str | None:
    """Return the field of a name in an error of the API, such as `locales.de.htmlContent`; None for other fields."""
    prefix, _, rest = name.partition(".")
    locale, _, wire = rest.rpartition(".") if prefix == "locales" else ("", "", name)
    return field_name(WIRE_PARTS[wire], locale) if wire in WIRE_PARTS else None


def own_texts(texts: Mapping[str, str], *, inherits_text: bool) -> dict[str, str]:
    """Return the texts that a language has itself, by part.

    An empty subject or HTML is that of the template itself. An empty text is generated from the HTML of the language.

    inherits_text: whether an empty text is that of the template, too.
    """
    own = {part: text for part, text in texts.items() if text}
    if "html" in own and not inherits_text:
        own.setdefault("text", "")
    return own


def inherits_text(texts: Mapping[str, str]) -> bool:
    """Return whether a stored language has the text of the template itself."""
    return bool(texts) and "text" not in texts


def split_tags(text: str) -> list[str]:
    """Return the tags of a text such as `de, fr`."""
    return text.replace(",", " ").split()


def language_name(locale: str) -> str:
    """Return the name of a language with its tag, such as `German (de-AT)`; the tag alone if its name is not known."""
    try:
        return f"{get_language_info(locale.lower())['name_translated']} ({locale})"
    except KeyError:
        return locale


def common_languages() -> list[tuple[str, str]]:
    """Return the tags of the languages that Django knows, with their names, sorted by name."""
    tags = (tag for tag, info in LANG_INFO.items() if "name" in info)
    return sorted(_named(tags), key=lambda pair: pair[1].casefold())


def _named(tags: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((normalize_locale(tag), get_language_info(tag)["name_translated"]) for tag in tags)
