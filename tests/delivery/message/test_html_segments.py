"""Template slots give the same result as a scan of the email's HTML."""

import html
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from delivery.message.html import fill, find_slots
from delivery.message.html_segments import PLACEHOLDER, TemplateSegments, slots_of_skeleton
from tests.conftest import examples
from tests.delivery.message.test_html import CORPUS, FOOTER, PIXEL, tracked
from tests.delivery.message.test_html_hostile import UNITS

VALUE = object()
# Parts of templates, and parts that could give a value meaning.
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
    st.sampled_from(["<", ">", '"', "'", "=", "<b>", "style", "\n", "title", PLACEHOLDER]),
    st.text(max_size=5),
)
PIECES = st.lists(st.one_of(st.sampled_from(TEXTS), st.just(VALUE)), max_size=12)


def template_segments(pieces, values):
    values = iter(values)
    places = [place for place, piece in enumerate(pieces) if piece is VALUE]
    return TemplateSegments([html.escape(next(values)) if piece is VALUE else piece for piece in pieces], places)


def by_scan(text, link):
    return fill(find_slots(text), link=link, pixel_url=PIXEL, footer=FOOTER)


def by_pattern(given, link):
    slots = given.slots()
    return slots and fill(slots, link=link, pixel_url=PIXEL, footer=FOOTER)


@given(PIECES, st.lists(VALUES, min_size=12, max_size=12), st.sampled_from([tracked, None]))
@settings(max_examples=examples(1500))
@example(["<a ", 'href="', VALUE, '">x</a>'], ["https://b.example/"] * 12, tracked)
@example(['<!--[if mso]><a href="', VALUE, '"><![endif]-->'], ["https://b.example/"] * 12, tracked)
@example(["<!--[if mso", VALUE, ">", '<a href="https://a.example/">', "-->"], ["--"] * 12, tracked)
@example(["<", VALUE, ' href="https://a.example/">'], ["a"] * 12, tracked)
def test_template_slots_give_the_same_result_as_a_scan(pieces, values, link):
    given = template_segments(pieces, values)
    made = by_pattern(given, link)
    assert made is None or made == by_scan("".join(given.segments), link)


@pytest.mark.parametrize("name", CORPUS)
def test_real_emails_have_template_slots(name):
    # A value in each text after a link, as in templates.
    pieces = [piece for text in CORPUS[name].split("</a>") for piece in (text, VALUE, "</a>")][:-1]
    first, second = (template_segments(pieces, [value] * len(pieces)) for value in ("Ada & Co <3", ""))
    assert by_pattern(first, tracked) == by_scan("".join(first.segments), tracked)
    assert first.template_slots() is second.template_slots()


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
        ([f'<a href="https://a.example/{PLACEHOLDER}', VALUE, '">'], "b"),
    ],
)
def test_a_value_that_could_be_markup_gives_no_template_slots(pieces, value):
    assert template_segments(pieces, [value]).template_slots() is None


@pytest.mark.parametrize(
    ("value", "href"),
    [
        ("https://b.example/?a=1&b=2", tracked("https://b.example/?a=1&b=2")),
        ("mailto:a@b.example", "mailto:a@b.example"),
        ("https://b.example/" + "x" * 2000, "https://b.example/" + "x" * 2000),
        ("", ""),
    ],
)
def test_a_target_with_a_value_is_decoded_for_each_email(value, href):
    pieces = ['<a href="', VALUE, '">x</a>']
    assert by_pattern(template_segments(pieces, [value]), tracked) == f'<a href="{href}">x</a>' + by_scan("", tracked)


@pytest.mark.parametrize(
    "unit",
    [
        f"<{PLACEHOLDER}",
        f"<a{PLACEHOLDER}",
        f'"{PLACEHOLDER}',
        f"<p title='{PLACEHOLDER}'>",
        f"<!-- {PLACEHOLDER}",
        f"{PLACEHOLDER}-",
    ],
)
def test_four_times_the_length_costs_about_four_times(unit):
    def cost(size):
        text = (unit * size)[:size]
        taken = []
        for _ in range(3):
            slots_of_skeleton.cache_clear()
            started = time.process_time()
            slots_of_skeleton(text)
            taken.append(time.process_time() - started)
        return min(taken)

    assert cost(100_000) < max(10 * cost(25_000), 0.01)


def test_above_the_number_of_tracked_links_each_email_is_scanned():
    """Links whose values are no targets do not count, so that a template does not know the first 500."""
    pieces = ['<a href="', VALUE, '">x</a>'] * 600
    values = ["#top"] * 50 + ["https://a.example/"] * 550
    given = template_segments(pieces, values)
    assert given.slots() is None
    assert template_segments(pieces[: 3 * 500], values).slots()
