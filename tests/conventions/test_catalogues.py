"""The catalogues in locale/ have each text of the code with a translation, and are compiled (bin/messages.py)."""

import importlib

import pytest
from babel.messages.catalog import Catalog

from tests.rows import each
from tests.stack.stack import REPOSITORY


@pytest.fixture(scope="module")
def messages():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(REPOSITORY / "bin")
        return importlib.import_module("messages")


def one(messages, text, translation, **options):
    catalog = Catalog(locale="de")
    catalog.add(text, translation, **options)
    return [problem.partition(": ")[2] for problem in messages.defects(catalog)]


def test_the_catalogues_are_complete_and_compiled(messages, settings):
    texts = messages.extract_texts()

    assert set(messages.LANGUAGES) == set(settings.RECIPIENT_LANGUAGES) > dict(settings.LANGUAGES).keys()
    assert len(texts) > 700
    assert len(messages.texts_of("fr")) > 30
    for language in messages.LANGUAGES:
        assert messages.update(language, messages.texts_of(language), is_check=True) == []


@each(
    ("text", "translation"),
    [
        ("Saved", ""),
        ("%(name)s is saved", "gespeichert"),
        ("%(name)s is saved", "%(Name)s ist gespeichert"),
        ("%(rate)s%% of all", "%(rate)s% aller"),
        ("Open {url}", "{Url} öffnen"),
        ("<b>%(name)s</b>", "%(name)s"),
        (("%(count)s email", "%(count)s emails"), ("%(count)s E-Mail", "E-Mails")),
        (("%(count)s email", "%(count)s emails"), ("%(count)s E-Mail", "")),
    ],
)
def test_a_translation_with_a_defect_is_reported(messages, text, translation):
    assert len(one(messages, text, translation)) >= 1


def test_a_fuzzy_translation_is_reported(messages):
    assert one(messages, "Saved", "Gespeichert", flags=["fuzzy"]) == ["the translation of 'Saved' is fuzzy"]


@each(
    ("text", "translation"),
    [("%(rate)s%% of {all}", "{all}: %(rate)s %%"), (("1 email", "%(n)s emails"), ("1 E-Mail", "%(n)s E-Mails"))],
)
def test_a_sound_translation_is_not_reported(messages, text, translation):
    assert one(messages, text, translation) == []


def test_new_texts_are_added_and_unused_ones_removed(messages):
    texts = Catalog()
    texts.add("A text that the service does not have")

    catalog = messages.updated_catalog("de", texts)

    assert [message.id for message in catalog if message.id] == ["A text that the service does not have"]
    assert len(list(messages.defects(catalog))) == 1
    problems = messages.update("de", texts, is_check=True)
    assert any("django.po is out of date" in problem for problem in problems)
