"""Update the catalogues of translated texts, locale/*/LC_MESSAGES/django.po and django.mo, from the source code.

    python bin/messages.py [--check]

Adds new texts without a translation and removes unused ones, then compiles the catalogues. Fails if a text has no
translation. The English catalogue, of the texts with a code (docs/decisions/0158), is written by hand. --check changes
no file and fails if a catalogue is out of date.
"""

import argparse
import gettext
import io
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import django
import unfold
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po
from django.contrib.admin.utils import flatten_fieldsets
from django.utils.translation import override
from django.utils.translation.template import templatize
from django_setup import REPOSITORY, set_up_django

LOCALE = REPOSITORY / "locale"
SOURCE_LANGUAGE = "en"
LANGUAGES = sorted(path.name for path in LOCALE.iterdir())
# Not part of the service, or English for everybody.
EXCLUDED = ("bin/", "tools/benchmarks/", "clients/", "tests/", "console/documentation/")
# The pages behind links in emails. Languages without a dashboard have only their texts.
RECIPIENT_PAGES = ("interfaces/tracking/templates/", "receiving/templates/")
# django-unfold has no catalogues. Most of its texts are in those of Django.
UNFOLD_TEMPLATES = Path(unfold.__file__).parent / "templates"
DJANGO_CATALOGS = [
    gettext.translation("django", Path(django.__file__).parent / path / "locale", ["de"])
    for path in ("conf", "contrib/admin", "contrib/auth")
]
KEYWORDS = {
    "_": None, "gettext": None, "gettext_lazy": None, "gettext_noop": None,
    "ngettext": (1, 2), "ngettext_lazy": (1, 2), "pgettext": ((1, "c"), 2), "npgettext": ((1, "c"), 2, 3),
}  # fmt: skip
# Must be the same in a text and its translation: variables, percent signs and HTML tags.
MARKS = re.compile(r"%%|%\(\w+\)s|\{\w+\}|</?\w+")
# Instead of the time of the update, which would change the files.
CREATED = datetime(2026, 1, 1, tzinfo=UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change no file")
    is_check = parser.parse_args().check
    set_up_django()
    problems = [
        problem for language in LANGUAGES for problem in update(language, texts_of(language), is_check=is_check)
    ]
    sys.exit("\n".join(problems) or 0)


def update(language: str, texts: Catalog, *, is_check: bool) -> list[str]:
    """Write the catalogue of a language unless it is a check; return its problems."""
    catalog = updated_catalog(language, texts)
    stale = [file.name for file, content in rendered(language, catalog).items() if read(file) != content]
    if not is_check:
        for file, content in rendered(language, catalog).items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        stale = []
    return [f"{language}: {name} is out of date; run bin/messages.py" for name in stale] + list(defects(catalog))


def texts_of(language: str) -> Catalog:
    """Return a catalogue with the texts that a language needs."""
    from django.conf import settings  # noqa: PLC0415 - main sets Django up

    if language == SOURCE_LANGUAGE:
        return read_po(io.BytesIO(read(po_path(language))))
    return extract_texts() if language in dict(settings.LANGUAGES) else texts_of_recipient_pages()


def extract_texts() -> Catalog:
    """Return a catalogue with the codes, the labels, and the texts of all Python files and templates."""
    catalog = Catalog()
    for text in (*coded_texts(), *model_labels()):
        catalog.add(text)
    for path in source_files():
        add_texts(catalog, path)
    for path in UNFOLD_TEMPLATES.rglob("*.html"):
        add_texts(catalog, path, skip=is_in_django)
    return catalog


def texts_of_recipient_pages() -> Catalog:
    catalog = Catalog()
    for path in source_files():
        if path.relative_to(REPOSITORY).as_posix().startswith(RECIPIENT_PAGES):
            add_texts(catalog, path)
    return catalog


def add_texts(catalog: Catalog, path: Path, *, skip: Callable[[Any], bool] = lambda _: False) -> None:
    """Add the texts of a file. skip: says which are left out."""
    for _, message, _, context in extract("python", source(path), keywords=KEYWORDS):
        if not skip(message):
            catalog.add(message, context=context)


def coded_texts() -> dict[str, str]:
    """Return the English texts by code."""
    catalog = read_po(io.BytesIO(read(po_path(SOURCE_LANGUAGE))))
    return {str(text.id): str(text.string) for text in catalog if text.id}


def model_labels() -> Iterator[str]:
    """Yield the names of models and fields that the staff admin shows, and the choices that pages show."""
    from django.contrib import admin  # noqa: PLC0415 - main sets Django up

    import config.urls  # noqa: F401, PLC0415 - registers the pages
    from console.dashboard.ui.labels import TRANSLATED_LABELS, TRANSLATED_VALUES  # noqa: PLC0415

    with override(SOURCE_LANGUAGE):
        for model, page in admin.site._registry.items():  # noqa: SLF001
            labels = map(str, labels_of(model._meta, names=shown_names(page)))  # noqa: SLF001 - a public API of Django
            yield from (label for label in labels if label and not is_in_django(label))
    yield from (value for choices in TRANSLATED_VALUES for value in choices.values)
    yield from (str(label) for choices in TRANSLATED_LABELS for label in choices.labels)


def shown_names(page: Any) -> set[str]:
    """Return the names of the fields that a page of the staff admin shows."""
    fieldsets = [*(page.fieldsets or ()), *getattr(page, "add_fieldsets", ())]
    return {*page.list_display, *page.list_filter, *(page.fields or ()), *flatten_fieldsets(fieldsets)}


def labels_of(options: Any, *, names: set[str]) -> Iterator[Any]:
    yield from (options.verbose_name, options.verbose_name_plural, options.app_config.verbose_name)
    for field in options.fields:
        if field.name in names:
            yield field.verbose_name
            # Labels that are the values stay as they are.
            yield from (label for value, label in field.flatchoices if label != value)


def source_files() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "*.py", "*.html"], cwd=REPOSITORY, check=True, capture_output=True)
    return [REPOSITORY / name for name in listed.stdout.decode().split() if not name.startswith(EXCLUDED)]


def source(path: Path) -> io.BytesIO:
    """Return a file as Python, in which the indentation of a template has no meaning."""
    text = path.read_text("utf-8")
    if path.suffix == ".html":
        text = "\n".join(line.strip() for line in templatize(text).splitlines())
    return io.BytesIO(text.encode())


def is_in_django(message: str | tuple[str, ...]) -> bool:
    if isinstance(message, tuple):
        return any(catalog.ngettext(message[0], message[1], 2) != message[1] for catalog in DJANGO_CATALOGS)
    return any(catalog.gettext(message) != message for catalog in DJANGO_CATALOGS)


def updated_catalog(language: str, texts: Catalog) -> Catalog:
    """Return the catalogue of a language with exactly the texts of the code."""
    path = po_path(language)
    old = read_po(io.BytesIO(read(path)), locale=language) if path.exists() else Catalog(locale=language)
    catalog = Catalog(locale=language, fuzzy=False, creation_date=CREATED, revision_date=CREATED)
    for text in sorted(texts, key=lambda message: (str(message.id), message.context or "")):
        if text.id:
            known = old.get(text.id if isinstance(text.id, str) else text.id[0], text.context)
            translation = known.string if known and type(known.string) is type(empty(text)) else empty(text)
            catalog.add(text.id, translation, flags=known.flags if known else text.flags, context=text.context)
    return catalog


def empty(message: Message) -> str | tuple[str, str]:
    return "" if isinstance(message.id, str) else ("", "")


def defects(catalog: Catalog) -> Iterator[str]:
    """Yield the translations that are missing, fuzzy, or have other placeholders than the text."""
    english = coded_texts()
    for message in catalog:
        strings = (message.string,) if isinstance(message.string, str) else tuple(message.string or ())
        if message.id and not all(strings):
            yield f"{catalog.locale}: no translation of {message.id!r}"
        elif message.id and message.fuzzy:
            yield f"{catalog.locale}: the translation of {message.id!r} is fuzzy"
        elif message.id:
            yield from (f"{catalog.locale}: {message.id!r}: {error}" for error in message.check(catalog))
            wanted = marks(english.get(message.id, message.id) if isinstance(message.id, str) else message.id[1])
            if any(marks(string) != wanted for string in strings[-1:]):
                yield f"{catalog.locale}: the translation of {message.id!r} has other variables or tags"


def marks(text: str) -> list[str]:
    return sorted(MARKS.findall(text))


def rendered(language: str, catalog: Catalog) -> dict[Path, bytes]:
    po, mo = io.BytesIO(), io.BytesIO()
    write_po(po, catalog, width=0, omit_header=True)
    write_mo(mo, catalog)
    return {po_path(language): header(catalog) + po.getvalue(), po_path(language).with_suffix(".mo"): mo.getvalue()}


def header(catalog: Catalog) -> bytes:
    """Return the header of a .po file without times, which would change with every update."""
    lines = [f"Language: {catalog.locale}", "Content-Type: text/plain; charset=UTF-8"]
    lines += [f"Plural-Forms: {catalog.plural_forms}"]
    return ('msgid ""\nmsgstr ""\n' + "".join(f'"{line}\\n"\n' for line in lines) + "\n").encode()


def read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def po_path(language: str) -> Path:
    return LOCALE / language / "LC_MESSAGES" / "django.po"


if __name__ == "__main__":
    main()
