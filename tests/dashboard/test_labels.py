"""English first, ready for translation: what a person reads is marked for translators, in templates and in Python."""

import ast
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.utils import translation
from django.utils.translation import trans_real

from dashboard.ui.labels import ELSEWHERE
from domains.models import Domain
from emails.models import Recipient
from emails.states import State
from suppressions.models import Suppression
from tests.conftest import make_account
from tests.dashboard.conftest import signed_in
from tests.dashboard.scenario import furnish, paths_of
from tests.dashboard.test_scoping import ROUTES
from webhooks.models import WebhookDelivery
from workspaces.models import ApiKey, AuditEntry, Membership

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted([*ROOT.glob("dashboard/templates/**/*.html"), *ROOT.glob("tracking/templates/**/*.html")])
SOURCES = sorted(ROOT.glob("dashboard/**/*.py"))

# Names, units and what programs write: the same in every language.
SAME_EVERYWHERE = {"UTC", "API", "TTL", "s", "ms", "email.", "pr_…", ".eml", "Postrider", "HTML", ":", "URL"}


class TestTemplates:
    TAG = re.compile(r"\{%-?\s*(\w+)(.*?)%\}|\{\{(.*?)\}\}|\{#.*?#\}", re.DOTALL)
    # From one to the other all is a message, or is shown as code.
    SPANS = {"blocktranslate": "endblocktranslate", "verbatim": "endverbatim", "comment": "endcomment"}
    # Words that a template hands on, where a person will read them.
    HANDED_ON = re.compile(
        r"\b(?:title|text|label|lead)=\"([^\"]*[A-Za-z]{2}[^\"]*)\"|default:\"([^\"]*[A-Za-z]{2}[^\"]*)\""
    )
    READ_ALOUD = {"aria-label", "title", "alt", "placeholder"}
    # Icons are named by words that nobody sees.
    UNREAD = {"code", "script", "style"}

    def test_mark_every_text(self):
        found = [f"{path.relative_to(ROOT)}: {text}" for path in TEMPLATES for text in self.unmarked(path.read_text())]

        assert not found, "\n".join(found)

    @pytest.mark.parametrize(
        "template",
        [
            "<p>Hello</p>",
            "{% if x %}Hello{% endif %}",
            '<a aria-label="Hello">x</a>',
            '{% include "x.html" with title="Hello you" %}',
            '{{ x|default:"nothing" }}',
            "{% translate 'a' %} and more",
        ],
    )
    def test_what_is_not_marked_is_seen(self, template):
        assert self.unmarked(template)

    def unmarked(self, template: str) -> list[str]:
        handed_on = [text for tag in self.TAG.finditer(template) for text in self.words_in(tag)]
        reader = Reader(self.READ_ALOUD, self.UNREAD)
        reader.feed(self.without_messages(template))
        reader.close()
        return handed_on + [text for text in reader.texts if has_words(text)]

    def words_in(self, tag: re.Match[str]) -> list[str]:
        if tag[1] in {"translate", "blocktranslate"}:
            return []
        return [first or second for first, second in self.HANDED_ON.findall(tag[0])]

    def without_messages(self, template: str) -> str:
        """Return the template without its tags, each span of a message one tag."""
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
    """Collects what a person sees or hears."""

    def __init__(self, attributes: set[str], unread: set[str]) -> None:
        super().__init__()
        self.attributes, self.unread = attributes, unread
        self.open: list[tuple[str, bool]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.texts += [value for name, value in attrs if name in self.attributes and value]
        if tag in {"input", "img", "meta", "link", "br", "path", "circle", "rect", "source", "hr"}:
            return
        is_unread = tag in self.unread or "material-symbols-outlined" in (values.get("class") or "")
        self.open.append((tag, is_unread))

    def handle_endtag(self, tag):
        while self.open and self.open.pop()[0] != tag:
            pass

    def handle_data(self, data):
        if not any(is_unread for _, is_unread in self.open):
            self.texts.append(data)


def has_words(text: str) -> bool:
    return any(re.search(r"[^\W\d_]", word) for word in text.split() if word.strip("(),;…") not in SAME_EVERYWHERE)


class TestSources:
    # Arguments by name, and of calls by place, that a person will read.
    NAMED = {"title", "label", "help_text", "subject", "what", "lead"}
    CALLS = {"ValidationError": 0, "success": 1, "error": 1, "warning": 1, "add_error": 1, "ask": 1, "Question": 0}

    @pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
    def test_mark_every_text(self, path):
        assert not self.unmarked(path.read_text())

    @pytest.mark.parametrize("source", ["page(title='Hello')", "messages.success(request, f'{x} is here')"])
    def test_what_is_not_marked_is_seen(self, source):
        assert self.unmarked(source)

    def unmarked(self, source: str) -> list[str]:
        calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
        read = [argument for call in calls for argument in self.read_in(call)]
        return [ast.unparse(argument) for argument in read if self.has_words(argument)]

    def read_in(self, call: ast.Call) -> list[ast.expr]:
        name = getattr(call.func, "attr", getattr(call.func, "id", ""))
        place = self.CALLS.get(name)
        named = [keyword.value for keyword in call.keywords if keyword.arg in self.NAMED]
        return named + ([call.args[place]] if place is not None and len(call.args) > place else [])

    def has_words(self, argument: ast.expr) -> bool:
        parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
        texts = [part.value for part in parts if isinstance(part, ast.Constant) and isinstance(part.value, str)]
        return has_words(" ".join(texts))


def test_words_of_other_rooms_are_known_to_translators():
    values = [*State.values, *Recipient.Kind.values, *WebhookDelivery.Status.values, *Suppression.Reason.values]
    values += [status.replace("_", " ") for status in Domain.Status.values]
    labels = [*ApiKey.Scope.labels, *Membership.Role.labels, *AuditEntry.Act.labels]

    assert {*values, *labels} <= ELSEWHERE


class Bracketed(trans_real.DjangoTranslation):
    """A language in which every message stands in brackets."""

    def gettext(self, message):
        return f"⟦{message}⟧"

    def ngettext(self, singular, plural, count):
        return f"⟦{singular if count == 1 else plural}⟧"


class TestPages:
    MESSAGE = re.compile(r"⟦[^⟦⟧]*⟧")
    # What strangers and customers wrote, and what programs are called by.
    DATA = {"code", "script", "style", "bdi", "pre", "textarea", "time", "strong", "title", "h2"}
    OWN = re.compile(
        r"""^\s*(?:A|test)\s*$ | alice\S* | \S+\.example\S* | \S+@\S+ | \w+_\w+ | postrider | shop | Your[ ]receipt
            | Receipt | DKIM | SPF | DMARC | ReturnPath | TXT | CNAME""",
        re.IGNORECASE | re.MULTILINE | re.VERBOSE,
    )

    @pytest.fixture
    def pseudo(self, monkeypatch):
        language = Bracketed("eo")
        monkeypatch.setitem(trans_real._translations, "eo", language)
        with translation.override("eo"):
            yield

    def test_show_nothing_that_is_not_marked(self, db, settings, pseudo):
        settings.WEBHOOK_ALLOW_PRIVATE_NETWORKS = True
        account = make_account("alice", plan="pro")
        paths = paths_of(furnish(account), ROUTES)
        client = signed_in(account.owner)

        found = {route: self.unmarked(client.get(path).content.decode()) for route, path in paths.items()}

        assert not any(found.values()), "\n".join(f"{text}: {route}" for route in found for text in found[route])

    def unmarked(self, page: str) -> list[str]:
        reader = Reader(set(), self.DATA)
        reader.feed(page)
        # A message may hold elements, so it ends in another text than it begins in.
        text = "\n".join(reader.texts)
        while text != (text := self.MESSAGE.sub("", text)):
            pass
        return [line.strip() for line in self.OWN.sub("", text).split("\n") if has_words(line)]
