"""Hostile HTML takes time and memory linear in its length."""

import time
import tracemalloc

from core.delivery.message.html import fill, find_slots
from tests.rows import each

UNITS = [
    *(
        "<",
        "<a",
        "<a ",
        "<a>",
        '<a href="',
        "<a href='",
        "<a href=",
        '<a href="http://a" ',
        '<a b ="c"',
        "<a ='",
        "<x/",
    ),
    *("</", "</a", "<!", "<?", "<!--", "<!-- -", "--!>", "<!-->", "<!--[if mso]>", "<!--[if mso]><a ", "<![CDATA["),
    *("<style>", "<style", "</style", "<style></style", "<script><", "<title></titl ", "<textarea>", "<plaintext"),
    *("<template>", "<svg>", "<b>", "</body>", '"', "&", "&amp;", "a=", " ", "\t/"),
]
FRONTS = [
    "", "<a ", '<a href="http://a/', '<a href="&', "<!--[if ", "<!--[if mso]>", "<style>", "<p title='", "<![CDATA[",
]  # fmt: skip
SIZE = 6_000


def cost(html: str) -> float:
    """Return the processor seconds, the least of three runs."""
    taken = []
    for _ in range(3):
        started = time.process_time()
        fill(find_slots(html), link=str, pixel_url=None, footer="")
        taken.append(time.process_time() - started)
    return min(taken)


def repeated(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]


@each("front", FRONTS)
def test_four_times_the_length_costs_about_four_times(front):
    for unit in UNITS:
        small, large = (cost(front + repeated(unit, size)) for size in (SIZE, 4 * SIZE))
        # Quadratic time would be sixteen times. Times close to zero cannot be compared.
        assert large < max(10 * small, 0.01), unit


@each("unit", ["<b>", "a ", "<a ", '<a href="http://a">', "<", "<!-->"])
def test_a_page_takes_no_more_memory_than_it_is_long(unit):
    html = "<a " + repeated(unit, 1 << 17)
    tracemalloc.start()
    slots = find_slots(html)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 * len(html) + 1000 * len(slots.segments)
