"""Compare the reply texts of received email with the expectations of other libraries.

    python -m tools.reply_texts LIBRARY FOLDER [--differences]

LIBRARY: discourse, github, crisp, php. FOLDER: a checkout of discourse/email_reply_trimmer, github/email_reply_parser,
crisp-oss/email-reply-parser, willdurand/EmailReplyParser. White space is not compared. The trimmed texts of the first
library are compared whole. The tests of the others have assertions about the fragments of a message:

- a text that the first fragment or the visible text equals is the reply text,
- a message of one fragment is the reply text,
- an expression for a visible fragment is found in the reply text, and one for a hidden fragment is not. Where a test
  does not say which fragments are hidden, all but the first one are.
"""

import argparse
import ast
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from receiving.reading.quotes import find_reply

COMMON = "COMMON_FIRST_FRAGMENT"


@dataclass(frozen=True)
class Expectation:
    """The expected reply text of a message. text: None if only the expressions are known."""

    name: str
    message: str
    text: str | None
    found: list[str] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)

    def is_met(self, reply: str) -> bool:
        if self.text is not None and reply.split() != self.text.split():
            return False
        return all(_search(pattern, reply) for pattern in self.found) and not any(
            _search(pattern, reply) for pattern in self.absent
        )


def _search(pattern: str, text: str) -> bool:
    return bool(re.search(pattern, text, re.MULTILINE))


@dataclass(frozen=True)
class Dialect:
    """How the tests of a library are written, as expressions.

    test: the beginning of a test.
    fixture: the name of a message.
    literal: a text with the number of its fragment.
    pattern: an expression with the number of its fragment.
    single: a message of one fragment.
    hidden: the flags of all fragments.
    """

    source: str
    emails: str
    test: str
    fixture: str
    literal: str
    pattern: str
    single: str
    hidden: str = r"(?!)"


DIALECTS = {
    "github": Dialect(
        source="test/email_reply_parser_test.rb",
        emails="test/emails",
        test=r"\n  def test_",
        fixture=r"(?:email[ (]:?\"?|join\(\")(\w+)",
        literal=r'assert_equal ("(?:[^"\\]|\\.)*"),\s+(?:EmailReplyParser\.parse_reply|reply\.fragments\[(\d)\])',
        pattern=r"assert_match\(?\s*/(.*?)/, +reply\.fragments\[(\d)\]",
        single=r"assert_equal 1, reply\.fragments\.size",
        hidden=r"assert_equal (\[[a-z, ]+\]),\s+reply\.fragments\.map \{ \|f\| f\.hidden\?",
    ),
    "crisp": Dialect(
        source="test/test.js",
        emails="test/fixtures",
        test=r"\nexport function ",
        fixture=r'(?:get_email\(|fixtures/)"(\w+)|/fixtures/(\w+)\.txt',
        literal=rf'test\.equal\(("(?:[^"\\]|\\.)*"|{COMMON}), '
        r"(?:fragments|email\.getVis|reply|text)(?:\.fragments)?\[?(\d?)",
        pattern=r"/((?:[^/\\\n]|\\.)+)/\w*\.test\(fragments\[(\d)\]",
        single=r"test\.equal\(1, fragments\.length\)",
        hidden=r"deepEqual\((\[[a-z, ]+\]), _\.map\(reply\.fragments, function\(f\) \{ return f\.isHidden",
    ),
    "php": Dialect(
        source="tests/EmailReplyParser/Tests/Parser/EmailParserTest.php",
        emails="tests/Fixtures",
        test=r"\n    public function test",
        fixture=r"getFixtures\('(\w[\w-]*)\.txt",
        literal=rf"assertEquals\((?:static::)?({COMMON}|\"(?:[^\"\\]|\\.)*\"),\s+"
        r"(?:trim\()?(?:\(string\) )?\$fragments\[(\d)\]",
        pattern=r"assertMatchesRegularExpression\('/(.*?)/', \(string\) \$fragments\[(\d)\]",
        single=r"assertCount\(1, \$fragments\)",
    ),
}


def read_assertions(folder: Path, dialect: Dialect) -> Iterator[Expectation]:
    """Yield what the tests of a library assert about reply texts."""
    source = (folder / dialect.source).read_text("utf-8")
    common = re.search(rf"{COMMON} = '(.*?)';", source, re.DOTALL)
    for test in re.split(dialect.test, source)[1:]:
        fixture = re.search(dialect.fixture, test)
        path = folder / dialect.emails / f"{next(filter(None, fixture.groups()))}.txt" if fixture else folder
        if path.is_file():
            message = path.read_text("utf-8")
            yield _read_assertions(test, dialect, common[1] if common else "", path.stem, message)


def _read_assertions(test: str, dialect: Dialect, common: str, name: str, message: str) -> Expectation:
    flags = re.search(dialect.hidden, test)
    hidden = [flag.strip(" []") == "true" for flag in flags[1].split(",")] if flags else [False, *[True] * 9]
    texts = [text for text, number in re.findall(dialect.literal, test) if number in {"", "0"}]
    patterns = [(pattern, hidden[int(number)]) for pattern, number in re.findall(dialect.pattern, test)]
    text = message if re.search(dialect.single, test) else None
    found = [pattern for pattern, is_hidden in patterns if not is_hidden]
    if texts:
        first = common.replace("\\n\\", "") if texts[0] == COMMON else str(ast.literal_eval(f"'''{texts[0][1:-1]}'''"))
        # The first of several visible fragments is a part of the reply text.
        text, found = (None, [re.escape(first), *found]) if hidden.count(False) > 1 else (first, found)
    return Expectation(name, message, text, found, [pattern for pattern, is_hidden in patterns if is_hidden])


def read_trimmed(folder: Path) -> Iterator[Expectation]:
    """Yield the messages of email_reply_trimmer with their trimmed texts."""
    for path in sorted((folder / "test" / "emails").glob("*.txt")):
        trimmed = folder / "test" / "trimmed" / path.name
        yield Expectation(path.stem, path.read_text("utf-8"), trimmed.read_text("utf-8"))


def _reader(library: str) -> Callable[[Path], Iterator[Expectation]]:
    return read_trimmed if library == "discourse" else lambda folder: read_assertions(folder, DIALECTS[library])


def main() -> None:
    """Print the percentage of reply texts that are as a library expects, and the names of the others."""
    parser = argparse.ArgumentParser()
    parser.add_argument("library", choices=["discourse", *DIALECTS])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--differences", action="store_true", help="print the reply texts that differ")
    options = parser.parse_args()
    read = [(one, find_reply(one.message) or "") for one in _reader(options.library)(options.folder)]
    judged = [(one, reply) for one, reply in read if one.text is not None or one.found or one.absent]
    different = [(one, reply) for one, reply in judged if not one.is_met(reply)]
    equal = len(judged) - len(different)
    sys.stdout.write(f"{options.library}: {equal} of {len(judged)}, {100 * equal / len(judged):.1f} %\n")
    for one, reply in different:
        sys.stdout.write(f"- {one.name}\n")
        if options.differences:
            sys.stdout.write(f"  found:    {reply!r}\n  expected: {one.text!r}, {one.found}, without {one.absent}\n")


if __name__ == "__main__":
    main()
