"""Translation markers: every text of the dashboard is marked, in templates and in Python."""

import ast
import re
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.pofile import read_po
from django.utils import translation
from django.utils.translation import trans_real

from console.dashboard.pages.emails.section import EmailSection
from core.workspaces.models import ApiKey, AuditEntry, Membership, User, Workspace
from domains.models import Domain
from emails.models import Entrance, Recipient
from emails.states import EmailStatus
from suppressions.models import Suppression
from tests.console.dashboard.routes import paths_of
from tests.console.dashboard.scenario import fill_workspace
from tests.console.dashboard.test_assets import ICON, present_icons
from webhooks.formats import format_choices
from webhooks.models import WebhookDeliveryStatus

ROOT = Path(__file__).parents[3]
TEMPLATES = sorted(
    [*ROOT.glob("console/dashboard/templates/**/*.html"), *ROOT.glob("interfaces/tracking/templates/**/*.html")]
)
SOURCES = sorted(ROOT.glob("console/dashboard/**/*.py"))

# Names, units and technical terms: the same in every language.
SAME_EVERYWHERE = {
    "UTC",
    "curl",
    "JavaScript",
    "Python",
    "Django",
    "SMTP",
    "API",
    "TTL",
    "s",
    "ms",
    "email.",
    "pr_…",
    ".eml",
    "Postrider",
    "HTML",
    ":",
    "URL",
    "English",
    "Deutsch",
    "en",
    "de",
    *dict(format_choices()[1:]).values(),
}


class TestTemplates:
    TAG = re.compile(r"\{%-?\s*(\w+)(.*?)%\}|\{\{(.*?)\}\}|\{#.*?#\}", re.DOTALL)
    # Tags whose whole content is a message or code.
    SPANS = {"blocktranslate": "endblocktranslate", "verbatim": "endverbatim", "comment": "endcomment"}
    # Texts passed as parameters of a tag.
    PARAMETERS = re.compile(
        r"\b(?:title|text|label|lead)=\"([^\"]*[A-Za-z]{2}[^\"]*)\"|default:\"([^\"]*[A-Za-z]{2}[^\"]*)\""
    )
    TEXT_ATTRIBUTES = {"aria-label", "title", "alt", "placeholder"}
    # Icon names are words but not visible text.
    HIDDEN = {"code", "kbd", "script", "style"}

    def test_mark_every_text(self):
        found = [f"{path.relative_to(ROOT)}: {text}" for path in TEMPLATES for text in self.unmarked(path.read_text())]

        assert not found, "\n".join(found)

    def test_unmarked_text_is_detected(self):
        templates = (
            "<p>Hello</p>",
            "{% if x %}Hello{% endif %}",
            '<a aria-label="Hello">x</a>',
            '{% include "x.html" with title="Hello you" %}',
            '{{ x|default:"nothing" }}',
            "{% translate 'a' %} and more",
        )
        assert [template for template in templates if not self.unmarked(template)] == []

    def unmarked(self, template: str) -> list[str]:
        parameters = [text for tag in self.TAG.finditer(template) for text in self.words_in(tag)]
        reader = Reader(self.TEXT_ATTRIBUTES, self.HIDDEN)
        reader.feed(self.without_messages(template))
        reader.close()
        return parameters + [text for text in reader.texts if has_words(text)]

    def words_in(self, tag: re.Match[str]) -> list[str]:
        if tag[1] in {"translate", "blocktranslate"}:
            return []
        return [first or second for first, second in self.PARAMETERS.findall(tag[0])]

    def without_messages(self, template: str) -> str:
        """Return the template without its tags and messages."""
        kept, end, until = [], 0, None
        for tag in self.TAG.finditer(template):
            if until is None:
                kept.append(template[end : tag.start()])
                until = self.SPANS.get(tag[1] or "")
            elif tag[1] == until:
                until = None
            end = tag.end()
        return "".join([*kept, template[end:]])


class Reader(HTMLParser):
    """Collects visible text and text attributes."""

    def __init__(self, attributes: set[str], hidden: set[str]) -> None:
        super().__init__()
        self.attributes, self.hidden = attributes, hidden
        self.open: list[tuple[str, bool]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.texts += [value for name, value in attrs if name in self.attributes and value]
        if tag in {"input", "img", "meta", "link", "br", "path", "circle", "rect", "source", "hr"}:
            return
        is_hidden = tag in self.hidden or "material-symbols-outlined" in (values.get("class") or "")
        is_hidden |= values.get("translate") == "no"
        self.open.append((tag, is_hidden))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if not any(is_hidden for _, is_hidden in self.open):
            self.texts.append(data)


def has_words(text: str) -> bool:
    return any(re.search(r"[^\W\d_]", word) for word in text.split() if word.strip("(),;…") not in SAME_EVERYWHERE)


class TestSources:
    # Keyword arguments, and positional arguments of calls, that contain user-visible text.
    NAMED = {"title", "label", "help_text", "subject", "change", "lead"}
    CALLS = {
        "ValidationError": 0,
        "success": 1,
        "error": 1,
        "warning": 1,
        "add_error": 1,
        "confirm": 1,
        "Confirmation": 0,
    }

    def test_mark_every_text(self):
        found = {str(path.relative_to(ROOT)): self.unmarked(path.read_text()) for path in SOURCES}
        assert {path: texts for path, texts in found.items() if texts} == {}
        assert self.unmarked("page(title='Hello')")
        assert self.unmarked("messages.success(request, f'{x} is here')")

    def unmarked(self, source: str) -> list[str]:
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        arguments = [argument for call in calls for argument in self.text_arguments(call)]
        return [ast.unparse(argument) for argument in arguments if self.has_words(argument)]

    def text_arguments(self, call: ast.Call) -> list[ast.expr]:
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        position = self.CALLS.get(name)
        named = [keyword.value for keyword in call.keywords if keyword.arg in self.NAMED]
        return named + ([call.args[position]] if position is not None and len(call.args) > position else [])

    def has_words(self, argument: ast.expr) -> bool:
        parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        return has_words(" ".join(texts))


def test_model_labels_are_in_the_catalogue():
    values = [
        *EmailStatus.values,
        *Recipient.RecipientType.values,
        *WebhookDeliveryStatus.values,
        *Suppression.Reason.values,
    ]
    values += EmailSection.events
    values += [status.replace("_", " ") for status in Domain.DomainStatus.values]
    labels = [*ApiKey.Scope.labels, *Membership.Role.labels, *AuditEntry.Action.labels, *Entrance.labels]

    german = german_catalog()
    assert [text for text in (*values, *labels) if not german.get(text)] == []


class Bracketed(trans_real.DjangoTranslation):
    """A pseudo language that puts every message in brackets."""

    def gettext(self, message):
        # A context stands before the message.
        return f"⟦{message.rpartition(trans_real.CONTEXT_SEPARATOR)[2]}⟧"

    def ngettext(self, singular, plural, count):
        return f"⟦{singular if count == 1 else plural}⟧"


class TestPages:
    MESSAGE = re.compile(r"⟦[^⟦⟧]*⟧")
    # Elements with user data and technical names.
    DATA = {"code", "kbd", "script", "style", "bdi", "pre", "textarea", "time", "strong", "title", "h2"}
    USER_DATA = re.compile(
        r"""^\s*(?:A|test)\s*$ | alice\S* | \S+\.example\S* | \S+@\S+ | \w+_\w+ | postrider | shop | Your[ ]receipt
            | Your[ ]order[ ]\{\{order\}\} | Receipt | Brand | Newsletter
            | Main | DKIM | SPF | DMARC | ReturnPath | TXT | CNAME""",
        re.IGNORECASE | re.MULTILINE | re.VERBOSE,
    )

    def test_show_marked_texts_no_english_sentence_in_german_and_known_icons(self, alice, owner, monkeypatch):
        Workspace.objects.update(plan="pro")
        paths = paths_of(fill_workspace(alice))
        sentences = english_sentences()

        german = {route: owner.get(path, headers={"accept-language": "de"}).text for route, path in paths.items()}
        monkeypatch.setitem(trans_real._translations, "en-gb", Bracketed("en-gb"))
        User.objects.update(language="en-gb")
        with translation.override("en-gb"):
            unmarked = {route: self.unmarked(owner.get(path).text) for route, path in paths.items()}

        assert not any(unmarked.values()), "\n".join(
            f"{text}: {route}" for route in unmarked for text in unmarked[route]
        )
        assert len(sentences) > 200
        assert 'lang="de"' in german["index"]
        assert [(route, text) for route, page in german.items() for text in sentences if text in page] == []
        icons = {name for page in german.values() for name in ICON.findall(page)}
        assert len(icons) > 30
        assert icons - present_icons() == set(), (
            "Add them to console/dashboard/assets/icons.txt, and run bin/assets.py."
        )

    def unmarked(self, page: str) -> list[str]:
        reader = Reader(set(), self.DATA)
        reader.feed(page)
        # A message may contain elements and then spans several texts.
        text = "\n".join(reader.texts)
        while text != (text := self.MESSAGE.sub("", text)):
            pass
        return [line.strip() for line in self.USER_DATA.sub("", text).split("\n") if has_words(line)]


def english_sentences() -> set[str]:
    """Return the texts of at least four words that the German catalogue translates and that have no values."""
    texts = {message.id: message.string for message in german_catalog() if message.id and isinstance(message.id, str)}
    return {text for text, german in texts.items() if text.count(" ") > 2 and "%" not in text and text != german}


def german_catalog() -> Catalog:
    return read_po(BytesIO((ROOT / "locale" / "de" / "LC_MESSAGES" / "django.po").read_bytes()), locale="de")
