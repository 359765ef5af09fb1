"""A pattern makes of an email's values what a scan of its own HTML would make."""

import html
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from delivery.message.html import fill, find_slots
from delivery.message.html_segments import MARK, TemplateSegments, pattern_of
from tests.delivery.message.test_html import CORPUS, FOOTER, PIXEL, marked
from tests.delivery.message.test_html_hostile import UNITS

VALUE = object()
# What templates are made of, and what could make a value count.
TEXTS = [
    *UNITS,
    *('<a href="https://a.example/', '<a href="', "<a title='", '">', "'>", '"', "/>", "</a>", " href=", "<p>", "</p>"),
    *(
        "<title>",
        "</title>",
        "</tit",
        "le>",
        "<!-- ",
        "-->",
        "->",
        "!>",
        "]]>",
        "]>",
        "<![endif]-->",
        "<a data-no-track",
    ),
    *("https://", "&am", "p;", "x", "\n"),
]
VALUES = st.one_of(
    st.sampled_from(
        ["", "a", "-", "--", "]", "/", "!", " ", "a href", "&", "amp;", "https://b.example/?a=1&b=2", "f "]
    ),
    st.sampled_from(["<", ">", '"', "'", "=", "<b>", "style", "\n", "title", MARK]),
    st.text(max_size=5),
)
PIECES = st.lists(st.one_of(st.sampled_from(TEXTS), st.just(VALUE)), max_size=12)


def woven(pieces, values):
    values = iter(values)
    places = [place for place, piece in enumerate(pieces) if piece is VALUE]
    return TemplateSegments([html.escape(next(values)) if piece is VALUE else piece for piece in pieces], places)


def by_scan(text, link):
    return fill(find_slots(text), link=link, pixel_url=PIXEL, footer=FOOTER)


def by_pattern(given, link):
    slots = given.slots()
    return slots and fill(slots, link=link, pixel_url=PIXEL, footer=FOOTER)


@given(PIECES, st.lists(VALUES, min_size=12, max_size=12), st.sampled_from([marked, None]))
@settings(max_examples=1500)
@example(["<a ", 'href="', VALUE, '">x</a>'], ["https://b.example/"] * 12, marked)
@example(['<!--[if mso]><a href="', VALUE, '"><![endif]-->'], ["https://b.example/"] * 12, marked)
@example(["<!--[if mso", VALUE, ">", '<a href="https://a.example/">', "-->"], ["--"] * 12, marked)
@example(["<", VALUE, ' href="https://a.example/">'], ["a"] * 12, marked)
def test_a_pattern_makes_what_a_scan_makes(pieces, values, link):
    given = woven(pieces, values)
    made = by_pattern(given, link)
    assert made is None or made == by_scan("".join(given.pieces), link)


@pytest.mark.parametrize("name", CORPUS)
def test_real_emails_have_a_pattern(name):
    # A value in each text behind a link, as templates have them.
    pieces = [piece for text in CORPUS[name].split("</a>") for piece in (text, VALUE, "</a>")][:-1]
    first, second = (woven(pieces, [value] * len(pieces)) for value in ("Ada & Co <3", ""))
    assert by_pattern(first, marked) == by_scan("".join(first.pieces), marked)
    assert first.pattern() is second.pattern()


@pytest.mark.parametrize(
    ("pieces", "value"),
    [
        (["<", VALUE, ">"], "b"),
        (["<p ", VALUE, ">"], "hidden"),
        (["<a href=", VALUE, ">x</a>"], "https://a.example/"),
        (["<title></tit", VALUE, "><a href='https://a.example/'>"], "le"),
        (["<!--", VALUE, '><a href="https://a.example/">-->'], "--"),
        (["<svg><![CDATA[", VALUE, ']><a href="https://a.example/">'], "]"),
        (['<a href="https://a.example/', VALUE], "b"),
        ([f'<a href="https://a.example/{MARK}', VALUE, '">'], "b"),
    ],
)
def test_a_value_that_could_be_markup_makes_no_pattern(pieces, value):
    assert woven(pieces, [value]).pattern() is None


@pytest.mark.parametrize(
    ("value", "href"),
    [
        ("https://b.example/?a=1&b=2", marked("https://b.example/?a=1&b=2")),
        ("mailto:a@b.example", "mailto:a@b.example"),
        ("https://b.example/" + "x" * 2000, "https://b.example/" + "x" * 2000),
        ("", ""),
    ],
)
def test_a_target_that_is_a_value_is_looked_at_each_time(value, href):
    pieces = ['<a href="', VALUE, '">x</a>']
    assert by_pattern(woven(pieces, [value]), marked) == f'<a href="{href}">x</a>' + by_scan("", marked)


@pytest.mark.parametrize(
    "unit", [f"<{MARK}", f"<a{MARK}", f'"{MARK}', f"<p title='{MARK}'>", f"<!-- {MARK}", f"{MARK}-"]
)
def test_four_times_the_length_costs_about_four_times(unit):
    def cost(size):
        text = (unit * size)[:size]
        taken = []
        for _ in range(3):
            pattern_of.cache_clear()
            started = time.process_time()
            pattern_of(text)
            taken.append(time.process_time() - started)
        return min(taken)

    assert cost(100_000) < max(10 * cost(25_000), 0.01)
