"""Tag reader: consumes the tokens inside one tag."""

import re

from core.lib.coded_texts import CodedText, join_sentences
from templates_app.language.errors import TemplateSyntaxError, syntax_error
from templates_app.language.names import InvalidName, VariablePath, is_segment, parse_path
from templates_app.language.nodes import Literal, Operand

SPACE = re.compile(r"\s*")
WORD = re.compile(r"""[^\s{}|"']*""")
PARAMETER = re.compile(r"""[^\s{}|"'=]*""")
NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,15})?")
BOOLEANS = {"true": True, "false": False}
STRING_STOP = {quote: re.compile(rf"[{quote}\\]") for quote in ('"', "'")}
KNOWN_TAGS = CodedText("templates_app.supported_tags")
UNCLOSED = {
    "}}": CodedText("templates_app.tag_not_closed"),
    "}}}": CodedText("templates_app.raw_tag_not_closed"),
    "--}}": CodedText("templates_app.comment_not_closed"),
}


class TagReader:
    """Reads one tag, starting at its braces. Each method consumes the text it reads and any space before it.

    The methods raise TemplateSyntaxError.
    """

    def __init__(self, source: str, offset: int) -> None:
        self.source = source
        self.offset = offset
        self.closing = "}}}" if source.startswith("{{{", offset) else "}}"
        self.position = offset + len(self.closing)

    def peek(self) -> str:
        """Return the next character that is not space, or "" at the end of the source."""
        self._match(SPACE)
        return self.source[self.position : self.position + 1]

    def accept(self, text: str) -> bool:
        """Consume a text if it comes next; return whether it did."""
        self._match(SPACE)
        is_next = self.source.startswith(text, self.position)
        self.position += len(text) * is_next
        return is_next

    def read_word(self) -> str:
        self._match(SPACE)
        return self._match(WORD)

    def read_path(self) -> VariablePath:
        word = self.read_word()
        if not word:
            raise self.error(join_sentences(CodedText("templates_app.name_missing"), KNOWN_TAGS))
        try:
            return parse_path(word)
        except InvalidName as error:
            raise self.error(str(error)) from error

    def read_operand(self) -> Operand:
        """Read a name, a text in quotes, a number, true or false."""
        if (text := self.read_string()) is not None:
            return Literal(text)
        start = self.position
        word = self.read_word()
        if word in BOOLEANS:
            return Literal(BOOLEANS[word])
        if NUMBER.fullmatch(word):
            return Literal(float(word) if "." in word else int(word))
        self.position = start
        return self.read_path()

    def is_at_end_of_value(self) -> bool:
        """Return whether the tag ends here, or its default follows."""
        self._match(SPACE)
        return self.source.startswith((self.closing, "|"), self.position)

    def read_parameter_name(self) -> str:
        """Read the name of a parameter and the equals sign after it."""
        name = self._match(PARAMETER)
        if not is_segment(name) or not self.accept("="):
            raise self.error(CodedText("templates_app.parameter_name", text=repr(self.read_word()[:60] or name[:60])))
        return name

    def read_string(self) -> str | None:
        r"""Read a text in double or single quotes, if one comes next; the quote and `\` are the only escapes."""
        quote = self.peek()
        if quote not in STRING_STOP:
            return None
        self.position += 1
        pieces = []
        while stop := STRING_STOP[quote].search(self.source, self.position):
            pieces.append(self.source[self.position : stop.start()])
            self.position = stop.end()
            if stop[0] == quote:
                return "".join(pieces)
            pieces.append(self._escaped(quote))
        raise syntax_error(self.source, self.offset, CodedText("templates_app.default_not_closed"))

    def expect_close(self, message: str) -> None:
        """Consume the closing braces; message: the error for any other text."""
        if not self.accept(self.closing):
            raise self.error(message)

    def skip_past(self, closing: str) -> None:
        end = self.source.find(closing, self.position)
        if end < 0:
            raise syntax_error(self.source, self.offset, UNCLOSED[closing])
        self.position = end + len(closing)

    def error(self, message: str) -> TemplateSyntaxError:
        """Return an error for this tag. A tag that runs into the next one is reported as not closed."""
        end = self.source.find(self.closing, self.position)
        following = self.source.find("{{", self.position)
        if end < 0 or 0 <= following < end:
            message = UNCLOSED[self.closing]
        return syntax_error(self.source, self.offset, message)

    def _match(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.source, self.position)
        assert match is not None  # the patterns also match the empty string
        self.position = match.end()
        return match[0]

    def _escaped(self, quote: str) -> str:
        character = self.source[self.position : self.position + 1]
        if character not in (quote, "\\"):
            raise self.error(CodedText("templates_app.default_backslash"))
        self.position += 1
        return character
