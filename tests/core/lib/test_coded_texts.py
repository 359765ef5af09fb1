"""Coded texts: English everywhere, and the language of the page where one is shown."""

import copy
import json
import pickle

import pytest
from django.utils import translation

from core.lib.coded_texts import CodedText, join_sentences, restore_text
from core.lib.translation import translate
from tests.rows import each


@pytest.fixture
def german():
    with translation.override("de"):
        yield


MISSING = CodedText("domains.no_spf", name="a.example")
POLICY = CodedText("domains.dmarc_value", tag="p", value="x", rule=CodedText("domains.dmarc_policies"))


@each(("text", "english", "translated"), [
    (MISSING, "No SPF record found at a.example.", "Kein SPF-Eintrag unter a.example gefunden."),
    (
        CodedText("domains.dmarc_at", domain="b.example", error=CodedText("domains.dmarc_no_policy")),
        "At b.example: The record has no p= tag. Add one, such as p=none.",
        "Bei b.example: Im Eintrag fehlt p=. Ergänzen Sie es, etwa p=none.",
    ),
    (
        CodedText("reputation.bounces", count="1,234", sent="5,000", days=7, share="24.68", limit=5),
        "1,234 of 5,000 recipients in 7 days had an invalid address: 24.68%, above the limit of 5%.",
        (
            "1.234 von 5.000 Empfängern in 7 Tagen hatten eine ungültige Adresse: "
            "24,68\N{NO-BREAK SPACE}%, über dem Grenzwert von 5\N{NO-BREAK SPACE}%."
        ),
    ),
    (
        CodedText("emails.suppressed", address="ada@a.example", reason=["bounce"]),
        "ada@a.example is on the suppression list (bounce).",
        "ada@a.example steht auf der Sperrliste (Bounce).",
    ),
    (
        CodedText("workspaces.key_created", about="sample_data", words=["full_access", "limited"]),
        "sample_data, full_access, limited",
        "sample_data, Vollzugriff, eingeschränkt",
    ),
    (
        CodedText("emails.already_sent"),
        "This email was already sent and cannot be cancelled.",
        "Diese E-Mail wurde bereits gesendet und kann nicht abgebrochen werden.",
    ),
])  # fmt: skip
@pytest.mark.usefixtures("german")
def test_a_text_is_english_and_is_translated_with_its_values(text, english, translated):
    assert text == english
    assert translate(text) == translated


@pytest.mark.usefixtures("german")
def test_another_text_stays_unchanged():
    assert translate("The domain has no dot.") == "The domain has no dot."


@pytest.mark.usefixtures("german")
def test_sentences_are_joined_and_translated_one_by_one():
    text = join_sentences(MISSING, "", CodedText("domains.found_elsewhere", place="b.example", name="a.example"), "x")

    assert text == "No SPF record found at a.example. It was found at b.example. Publish it at a.example instead. x"
    assert translate(text) == (
        "Kein SPF-Eintrag unter a.example gefunden. Er wurde unter b.example gefunden. "
        "Veröffentlichen Sie ihn stattdessen unter a.example. x"
    )
    assert join_sentences("", MISSING) is MISSING
    assert join_sentences("") == ""


@each("text", [MISSING, POLICY, join_sentences(MISSING, POLICY, "x")])
@pytest.mark.usefixtures("german")
def test_a_text_is_stored_as_its_code_and_values(text):
    restored = restore_text(json.loads(json.dumps(text.to_json())))

    assert restored == text
    assert translate(restored) == translate(text)


@each("stored", [
    None,
    {"code": "domains.of_another_version", "values": {}},
    {"code": "domains.no_spf", "values": {"of_another_version": "x"}},
])  # fmt: skip
def test_without_a_code_of_this_version_the_english_text_is_shown(stored):
    assert restore_text(stored, text="An English text.") == "An English text."


@each("clone", [copy.deepcopy, lambda text: pickle.loads(pickle.dumps(text))])
def test_a_copy_has_the_code_and_values_too(clone):
    assert clone(POLICY).to_json() == POLICY.to_json()


@each(("code", "values"), [("domains.unknown", {}), ("domains.no_spf", {})])
def test_a_text_needs_a_known_code_and_its_values(code, values):
    with pytest.raises(LookupError):
        CodedText(code, **values)


def test_the_message_of_an_exception_is_the_text_with_its_code():
    assert str(ValueError(MISSING)) is MISSING
    assert CodedText("domains.invalid_record", error=ValueError(MISSING)).values == {"error": MISSING}


def test_control_characters_in_values_are_escaped():
    assert CodedText("domains.no_spf", name="a\x00\x1b\n") == "No SPF record found at a\\x00\\x1b\n."
