"""Mustachio, the language of Postmark's templates, in the template language of Postrider.

`{{#person}}` is a section of its own there, and `{{^person}}` its opposite: `{{#with person}}` and
`{{#unless person}}` here (docs/decisions/0192). `../` leaves one name of a path or one item of a list there, and a
section here: in `{{#each team.people}}`, `{{../../name}}` is the name of the team.
See https://postmarkapp.com/support/article/1077-template-syntax and https://github.com/ActiveCampaign/mustachio.
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from templates_app.language.syntax import MAX_NESTING

# A tag that has another form here: a section, its end, an unescaped value, and the value of a scope. A backslash
# escapes the braces.
NAME = r"[\w./-]{1,255}"
TAG = re.compile(
    rf"(?<!\\)\{{\{{\s*(?:\#each\s+(?P<items>{NAME})|(?P<sign>[#^/])\s*(?P<name>{NAME})|&\s*(?P<raw>{NAME}))\s*\}}\}}"
    r"|(?<!\\)(?P<open>\{\{\{?)\s*(?P<value>\.|\.\./[\w./-]{0,252})\s*(?=\}\})"
)
EACH = "each"
OPENED = {"#": "with", "^": "unless"}
UP = "../"
# The item of a list, as a level of a place. No name is empty.
ITEM = ""
# The names from the model to a value.
Place = tuple[str, ...]


class _MustachioSection(NamedTuple):
    """An open section: its name, its word in Postrider, and the context around it."""

    name: str
    word: str
    outer: "_MustachioContext"


class _MustachioContext(NamedTuple):
    """The place of the values of a section, and those of the scopes of Postrider, from the model inwards."""

    place: Place = ()
    scopes: tuple[Place, ...] = ((),)

    def find(self, path: str) -> Place:
        """Return the place that a path names."""
        ups, names = _split(path)
        return self.place[: max(len(self.place) - ups, 0)] + names

    def path_to(self, path: str) -> str:
        """Return a path in the form of Postrider."""
        ups, names = _split(path)
        if not ups:
            return path if names else "this"
        place = self.place[: max(len(self.place) - ups, 0)]
        scope = max(index for index, start in enumerate(self.scopes) if place[: len(start)] == start)
        # A list has no names. They are looked up further out.
        is_list = self.place[len(place) : len(place) + 1] == (ITEM,)
        between = () if is_list and names else place[len(self.scopes[scope]) :]
        return UP * (len(self.scopes) - 1 - scope) + (".".join((*between, *names)) or "this")


@dataclass(slots=True)
class _Translator:
    """Translates the tags of one text in turn."""

    context: _MustachioContext = field(default_factory=_MustachioContext)
    sections: list[_MustachioSection] = field(default_factory=list)

    def translate(self, tag: re.Match[str]) -> str:
        if tag["open"]:
            return tag["open"] + self.context.path_to(tag["value"])
        if tag["raw"]:
            return f"{{{{{{{self.context.path_to(tag['raw'])}}}}}}}"
        if tag["items"]:
            return self._begin(EACH, EACH, tag["items"])
        if tag["sign"] in OPENED:
            # Another section of the same name ends the one before it.
            return self._end("", tag["name"]) + self._begin(tag["name"], OPENED[tag["sign"]], tag["name"])
        return self._end(tag[0], tag["name"])

    def _begin(self, name: str, word: str, path: str) -> str:
        written = self.context.path_to(path)
        self.sections.append(_MustachioSection(name, word, self.context))
        # Templates with more sections within each other do not compile.
        if len(self.sections) <= MAX_NESTING:
            self.context = self._inner(word, path)
        return f"{{{{#{word} {written}}}}}"

    def _inner(self, word: str, path: str) -> _MustachioContext:
        place = self.context.find(path) + ((ITEM,) if word == EACH else ())
        is_scope = word != OPENED["^"]
        return _MustachioContext(place, (*self.context.scopes, place) if is_scope else self.context.scopes)

    def _end(self, tag: str, name: str) -> str:
        """Return the end of the innermost section if it has this name, and otherwise the tag as it is."""
        if not self.sections or self.sections[-1].name != name:
            return tag
        section = self.sections.pop()
        self.context = section.outer
        return f"{{{{/{section.word}}}}}"


def translate_sections(text: str) -> str:
    """Return a text whose sections are those of Postrider. An end without a beginning stays, and does not compile."""
    return TAG.sub(_Translator().translate, text)


def _split(path: str) -> tuple[int, Place]:
    """Return the levels that a path leaves, and its names."""
    ups = 0
    while path.startswith(UP, len(UP) * ups):
        ups += 1
    return ups, tuple(name for name in path[len(UP) * ups :].split(".") if name)
