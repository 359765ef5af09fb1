"""A place inside a tag, and what may stand there."""

import re

from templates_app.language.errors import TemplateSyntaxError, fault
from templates_app.language.names import InvalidName, Path, parse_path

SPACE = re.compile(r"\s*")
WORD = re.compile(r'[^\s{}|"]*')
STRING_STOP = re.compile(r'["\\]')
KNOWN = "Known are {{name}}, {{{name}}}, {{#if}}, {{#unless}}, {{#each}}, {{else}} and {{! comments }}."
UNCLOSED = {
    "}}": "The tag is not closed: }} is missing.",
    "}}}": "The tag opens with {{{ and is not closed with }}}.",
    "--}}": "The comment opens with {{!-- and is not closed with --}}.",
}


class Reader:
    """Reads one tag from its braces on; each method steps over what it has read and any space before it.

    All of them raise TemplateSyntaxError.
    """

    def __init__(self, source: str, at: int) -> None:
        self.source = source
        self.at = at
        self.closing = "}}}" if source.startswith("{{{", at) else "}}"
        self.position = at + len(self.closing)

    def peek(self) -> str:
        """Return the next character that is not space; none at the end of the source."""
        self._match(SPACE)
        return self.source[self.position : self.position + 1]

    def is_past(self, text: str) -> bool:
        """Step over a text if it comes next."""
        self._match(SPACE)
        is_next = self.source.startswith(text, self.position)
        self.position += len(text) * is_next
        return is_next

    def word(self) -> str:
        self._match(SPACE)
        return self._match(WORD)

    def path(self) -> Path:
        word = self.word()
        if not word:
            raise self.fault(f"A name is missing. {KNOWN}")
        try:
            return parse_path(word)
        except InvalidName as error:
            raise self.fault(str(error)) from error

    def rest_of_string(self) -> str:
        r"""Read up to the closing quote; `\"` and `\\` are the only escapes."""
        pieces = []
        while stop := STRING_STOP.search(self.source, self.position):
            pieces.append(self.source[self.position : stop.start()])
            self.position = stop.end()
            if stop[0] == '"':
                return "".join(pieces)
            pieces.append(self._escaped())
        raise fault(self.source, self.at, 'The default is not closed: its second " is missing.')

    def close(self, sentence: str) -> None:
        """Step over the closing braces; the sentence tells what is wrong with anything else."""
        if not self.is_past(self.closing):
            raise self.fault(sentence)

    def skip_past(self, closing: str) -> None:
        end = self.source.find(closing, self.position)
        if end < 0:
            raise fault(self.source, self.at, UNCLOSED[closing])
        self.position = end + len(closing)

    def fault(self, sentence: str) -> TemplateSyntaxError:
        """Return the error of this tag; one that runs into the next tag is first of all not closed."""
        end = self.source.find(self.closing, self.position)
        following = self.source.find("{{", self.position)
        if end < 0 or 0 <= following < end:
            sentence = UNCLOSED[self.closing]
        return fault(self.source, self.at, sentence)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.source, self.position)
        assert found is not None  # the patterns match nothing, too
        self.position = found.end()
        return found[0]

    def _escaped(self) -> str:
        character = self.source[self.position : self.position + 1]
        if character not in ('"', "\\"):
            raise self.fault('In a default, a backslash stands only before " or another backslash.')
        self.position += 1
        return character
