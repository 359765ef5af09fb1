"""The text of a received email without the messages that it quotes.

The folder replies has lines above quotes by program and language, and texts that resemble them.
"""

from itertools import product
from pathlib import Path

from core.delivery.message.text import html_to_text
from receiving.reading import quote_patterns as patterns
from receiving.reading.quotes import MAX_LENGTH, MAX_LINES, find_reply, find_reply_in_html
from tests.rows import each

SAMPLES = Path(__file__).parent / "replies"
REPLY = "Danke, das passt!\n\nAda"
QUOTED = "> Liebe Ada,\n>\n> Ihre Bestellung 42 ist unterwegs."
UNQUOTED = "\nLiebe Ada,\nIhre Bestellung 42 ist unterwegs.\n\nDein Shop"
PARTLY_QUOTED = "> Liebe Ada,\n\nIhre Bestellung 42\nist unterwegs."


def read_samples(name: str) -> list[list[str]]:
    """Return the name and the text of each sample in a file."""
    rows = (SAMPLES / name).read_text("utf-8").split("== ")[1:]
    return [[part.strip("\n") for part in row.partition("\n")[::2]] for row in rows]


INTRODUCTIONS = read_samples("introductions.txt")
OWN_TEXTS = [[text] for _, text in read_samples("own_texts.txt")]


@each(("program", "lines"), INTRODUCTIONS)
def test_a_reply_ends_above_the_lines_of_any_program(program, lines):
    for below, gap in product((QUOTED, PARTLY_QUOTED, UNQUOTED), ("\n\n", "\n")):
        assert find_reply(f"{REPLY}{gap}{lines}\n{below}") == REPLY, (below, gap)


@each(("program", "lines"), INTRODUCTIONS)
def test_spellings_of_programs_do_not_matter(program, lines):
    for spelling in (
        lines.replace(" ", "\u00a0"),
        lines.replace("<", "<\u202a").replace(">", "\u202c\u200f>"),
        lines.replace("-", "\u2010"),
        lines.replace("\n", "\r\n"),
    ):
        assert find_reply(f"{REPLY}\n\n{spelling}\n{QUOTED}") == REPLY, spelling


@each(("program", "lines"), INTRODUCTIONS)
def test_a_quoted_introduction_belongs_to_its_quote(program, lines):
    quoted = "".join(f"> {line}\n" for line in lines.split("\n"))
    assert find_reply(f"{REPLY}\n\n{quoted}{QUOTED}\n") == REPLY


@each("sample", [*patterns.WROTE.values(), *patterns.BEFORE_SENDERS.values()])
def test_each_pattern_of_an_introduction_is_recognized(sample):
    assert find_reply(f"{REPLY}\n\n{sample}\n{UNQUOTED}") == REPLY


@each("sample", patterns.SIGNATURES.values())
def test_each_line_of_a_device_is_removed(sample):
    assert find_reply(f"{REPLY}\n\n{sample}") == REPLY
    assert find_reply(f"{REPLY}\n\n{sample}\n\nOn Wed, Aug 5, 2026 at 7:35 AM Shop wrote:\n> Hi") == REPLY
    assert find_reply(f"{sample}\n\n{REPLY}") == REPLY


@each("language", patterns.LABELS)
def test_each_language_has_header_blocks(language):
    senders, dates, recipients, subjects = (words.split(",") for words in patterns.LABELS[language].split(";")[:4])
    for sender, date, recipient, subject in zip(senders * 9, dates * 3, recipients * 9, subjects * 9, strict=False):
        header = [
            f"{sender.strip().title()}: Shop <r@in.example.com>",
            f"{date.strip().title()}: 05.08.2026 07:35",
            f"{recipient.strip().title()}: Ada",
            f"{subject.strip().title()}: 42",
        ]
        for lines in (header, header[::-1], [f"*{line.replace(':', ':*', 1)}" for line in header], header[:2]):
            assert find_reply("\n".join([REPLY, "", *lines, UNQUOTED])) == REPLY, lines


@each("words", [word for word in patterns.SEPARATORS.replace("\n", ";").split(";") if word.strip()])
def test_a_separator_ends_the_reply(words):
    for line in (f"-----{words.strip().title()}-----", f"*-------- {words.strip()} --------*"):
        assert find_reply(f"{REPLY}\n\n{line}\n{UNQUOTED}") == REPLY, line


@each("words", patterns.FORWARDS)
def test_a_forwarded_message_is_no_reply(words):
    for line in (f"{words.capitalize()}:", f"> {words.capitalize()} :"):
        assert find_reply(f"{REPLY}\n\n{line}\n\n> From: Shop <r@in.example.com>\n> Subject: 42\n{QUOTED}") == REPLY, (
            line
        )


@each("text", OWN_TEXTS)
def test_a_text_without_a_quote_is_kept(text):
    (whole,) = text
    assert find_reply(whole) == whole.strip()


INTRODUCTION = "On Wed, Aug 5, 2026 at 7:35 AM Shop <r@in.example.com> wrote:"
LONG = "\n".join(f"Line {number}" for number in range(7))


@each(("text", "reply"), [
    # Below a quote.
    (f"{INTRODUCTION}\n{QUOTED}\n\n{REPLY}", REPLY),
    (f"> {INTRODUCTION}\n{QUOTED}\n\n{REPLY}", REPLY),
    (f"Hi,\n\n{INTRODUCTION}\n{QUOTED}\n\n{REPLY}", f"Hi,\n\n{INTRODUCTION}\n{QUOTED}\n\n{REPLY}"),
    (f"See below.\n\n{INTRODUCTION}\n{QUOTED}\n\n{LONG}", f"See below.\n\n{QUOTED}\n\n{LONG}"),
    (f"{QUOTED}\n\n{REPLY}", f"{QUOTED}\n\n{REPLY}"),
    # Between quotes.
    (f"{INTRODUCTION}\n> One?\n\nYes.\n\n> Two?\n\nNo.", f"{INTRODUCTION}\n> One?\n\nYes.\n\n> Two?\n\nNo."),
    (f"{INTRODUCTION}\n> One?\n\nYes.\n\n> Two?\n>\n> Bye\n", f"{INTRODUCTION}\n> One?\n\nYes."),
    (f"See below.\n{INTRODUCTION}\n> One?\nYes.\n> Two?\nNo.", "See below.\n\n> One?\nYes.\n> Two?\nNo."),
    # The end of a quoted line that was wrapped is no answer.
    (f"{REPLY}\n\n{INTRODUCTION}\n> {'a ' * 35}\nb\n> c", REPLY),
    # Forwarded without a note, or quoted without marks.
    ("---------- Forwarded message ---------\nFrom: Shop <r@in.example.com>\nDate: Wed, 5 Aug 2026\n\nNews", "News"),
    (f"{INTRODUCTION}\n\nNews", "News"),
    # Nothing but a quote.
    (f"{INTRODUCTION}\n{QUOTED}", None), (f"> {INTRODUCTION}\n{QUOTED}", None), (QUOTED, QUOTED), ("  \n", None),
    # Without an introduction.
    (f"{REPLY}\n\n{QUOTED}\n", REPLY),
])  # fmt: skip
def test_answers_below_and_between_quotes_are_kept(text, reply):
    assert find_reply(text) == reply


@each(("text", "reply"), [
    (f"{REPLY}\n\n-- \nAda Lovelace\nCountess", REPLY), (f"{REPLY}\n--\nAda Lovelace", REPLY),
    (f"Hello\n\n-Ada Lovelace\n\n{INTRODUCTION}\n> Hi", "Hello"),
    (f"{REPLY}\n\n{'_' * 47}\nusers mailing list\nusers@example.com\nhttps://lists.example.com/users", REPLY),
    (f"{REPLY}\n\nSent from my phone. Please excuse typos.", REPLY),
    (f"{REPLY}\n\nAby uzyskać Outlook for iOS <https://aka.ms/o0ukef>", REPLY),
    ("A -- b\n\nc", "A -- b\n\nc"),
])  # fmt: skip
def test_signatures_are_removed(text, reply):
    assert find_reply(text) == reply


def test_a_text_that_is_too_long_to_judge_has_no_reply():
    assert find_reply("a\n" * MAX_LINES) is not None
    assert find_reply("a\n" * (MAX_LINES + 1)) is None
    assert len(find_reply("a" * (MAX_LENGTH + 1))) == MAX_LENGTH


CITE = '<blockquote type="cite">Dear Ada, old</blockquote>'


@each(("program", "html"), read_samples("html.txt"))
def test_elements_with_quotes_are_removed_from_html(program, html):
    assert find_reply_in_html(f"<html><body>{html}</body></html>", html_to_text(html)) == "Hi"


@each(("html", "reply"), [
    (f"{CITE}<div>Hi</div>", "> Dear Ada, old\nHi"),
    (f"<div>{INTRODUCTION.replace('<', '&lt;')}</div>{CITE}<div>Hi</div>", "Hi"),
    ('<p>Hi</p><blockquote style="margin:0 0 0 40px">indented</blockquote>', "Hi\n\nindented"),
    (CITE, "Dear Ada, old"), ("<p>Hi", "Hi"), ("<p>Hi<blockquote type=cite>never closed", "Hi"),
])  # fmt: skip
def test_other_html_is_kept(html, reply):
    assert find_reply_in_html(html, html_to_text(html)) == reply
