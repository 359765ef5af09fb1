"""Messages of the services in the language of the page: every message of the services that pages show."""

import ast
import re
import time
from pathlib import Path

import pytest
from django.utils import translation

from dashboard.texts.service_messages import (
    BY_PRECEDENCE,
    MAX_LEVELS,
    MESSAGES,
    PLACEHOLDER,
    pattern_of,
    translate_message,
)

ROOT = Path(__file__).parents[2]
# Modules whose sentences are shown on pages of the dashboard.
SOURCES = [
    *sorted(ROOT.glob("domains/record_checks/*.py")),
    *sorted(ROOT.glob("templates_app/language/*.py")),
    *(
        ROOT / name
        for name in (
            "domains/check_claims.py",
            "domains/names.py",
            "domains/records.py",
            "domains/services.py",
            "emails/accept/suppressed.py",
            "inbound/inbox/reading.py",
            "lib/email_addresses.py",
            "lib/guarded_http.py",
            "templates_app/serializers.py",
            "templates_app/services.py",
            "webhooks/sending/outcomes.py",
            "webhooks/sending/targets.py",
            "webhooks/services.py",
            "workspaces/account_status.py",
            "workspaces/key_limits.py",
            "workspaces/quota.py",
            "workspaces/services.py",
        )
    ),
]
# In a setting of the operator, in the management API, in the JSON API.
NOT_SHOWN = {
    "leave out v=spf1; list only the mechanisms.",
    "x is not allowed: do not use all, macros or the qualifiers - ~ ?.",
    "The key that creates this one is limited to x. Give networks within it.",
    "The key that creates this one is limited to x requests per second. Give at most as many.",
    "The new key must expire no later than the key that creates it, at x.",
    "Not found in this workspace.",
}


@pytest.fixture(autouse=True)
def _german():
    with translation.override("de"):
        yield


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_sentence_of_a_service_has_a_translation(path):
    texts = set(sentences(ast.parse(path.read_text()))) - NOT_SHOWN

    assert not [text for text in texts if translate_message(text) == text]


def sentences(tree: ast.AST) -> list[str]:
    """Return the sentences of a module, with x for each value."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        node.body[0].value for node in ast.walk(tree) if isinstance(node, documented) and ast.get_docstring(node)
    }
    strings = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.Constant)]
    inner = {part for node in strings if isinstance(node, ast.JoinedStr) for part in ast.walk(node) if part is not node}
    texts = [text_of(node) for node in strings if node not in docstrings | inner]
    return [text for text in texts if text.endswith(".") and text.count(" ") > 1]


def text_of(node: ast.JoinedStr | ast.Constant) -> str:
    if isinstance(node, ast.Constant):
        # A template of str.format has no space in its braces; one of our language has two.
        return re.sub(r"(?<!\{)\{\w*\}(?!\})", "x", node.value).strip() if isinstance(node.value, str) else ""
    parts = [part.value if isinstance(part, ast.Constant) else "\0" for part in node.values]
    # A value after a sentence is another sentence.
    return re.sub(r"(?<=\.)\0$", "", "".join(parts)).replace("\0", "x")


@pytest.mark.parametrize("message", MESSAGES)
def test_every_message_is_recognized_before_a_more_general_one(message):
    text = PLACEHOLDER.sub("x", message).replace("%%", "%")

    assert next(one for one in BY_PRECEDENCE if pattern_of(one).fullmatch(text)) == message


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("mail.example is not a domain name.", "mail.example ist kein Domainname."),
        ("No SPF record found at a.example.", "Kein SPF-Eintrag unter a.example gefunden."),
        (
            "No TXT record found at a.b.example. It was found at b.example. Publish it at a.b.example instead.",
            (
                "Kein TXT-Eintrag unter a.b.example gefunden. "
                "Er wurde unter b.example gefunden. Veröffentlichen Sie ihn stattdessen unter a.b.example."
            ),
        ),
        (
            "At b.example: The record is invalid: 'p' has no =. Write tags as name=value, separated by semicolons.",
            (
                "Bei b.example: Der Eintrag ist ungültig: "
                "In 'p' fehlt das =. Schreiben Sie die Teile als Name=Wert, getrennt durch Semikolons."
            ),
        ),
        (
            "1,234 of 5,000 recipients in 7 days had an invalid address: 24.68%, above the limit of 5%.",
            (
                "1.234 von 5.000 Empfängern in 7 Tagen hatten eine ungültige Adresse: "
                "24,68\N{NO-BREAK SPACE}%, über dem Grenzwert von 5\N{NO-BREAK SPACE}%."
            ),
        ),
        ("ada@a.example is on the suppression list (bounce).", "ada@a.example steht auf der Sperrliste (Bounce)."),
    ],
)
def test_a_message_is_translated_with_its_values(text, translated):
    assert translate_message(text) == translated


@pytest.mark.parametrize("text", ["", "Mailbox unknown", "x" * 100_000, "Your account is closed. Call us."])
def test_another_text_stays_unchanged(text):
    assert translate_message(text) == text


def test_reading_a_crafted_text_takes_time_linear_in_its_length():
    message = next(one for one in MESSAGES if one.startswith("%(count)s of %(sent)s recipients"))
    text = "x of x recipients in x days reported the email as spam: x%, " * 300
    started = time.thread_time()
    assert not pattern_of(message).fullmatch(text)
    # Trying all combinations of ends took more than an hour.
    assert time.thread_time() - started < 10


def test_messages_within_messages_are_translated_up_to_a_depth():
    assert translate_message("At x: " * 20 + "y") == "Bei x: " * MAX_LEVELS + "At x: " * (20 - MAX_LEVELS) + "y"


def test_a_message_stays_unchanged_on_an_english_page():
    with translation.override("en"):
        assert translate_message("The domain has no dot.") == "The domain has no dot."
