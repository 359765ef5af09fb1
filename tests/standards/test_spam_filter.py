"""SpamAssassin reports no problem with the composition of messages, and the tracking pixel costs what we document."""

import re
import subprocess
from pathlib import Path

from core.delivery.message.footer import html_footer, text_footer
from core.delivery.message.html import fill, find_slots
from core.delivery.message.text import html_to_text
from tests.corpus import emails
from tests.standards.shapes import HTML, LOGO, UNSUBSCRIBE, WITH_LOGO, outgoing_message
from tests.standards.tools import program

SPAM = Path(__file__).parent / "scripts" / "spam.pl"
COMPOSITION_RULE = re.compile(r"^_*(MIME|MISSING|BASE64|MALFORMED|INVALID|BAD|CTYPE|MALF)_|_MIME")


def hits(directory: Path, files: list[Path]) -> dict[Path, tuple[float, set[str]]]:
    """Return the score of each file and the rules that it hit."""
    program("spamassassin", package="spamassassin")
    done = subprocess.run(["perl", SPAM, directory, *files], capture_output=True, text=True, timeout=120, check=True)
    lines = (line.split() for line in done.stdout.splitlines())
    return {Path(path): (float(score), set("".join(names).split(","))) for path, score, *names in lines}


def test_no_shape_hits_a_rule_about_mime_or_about_missing_headers(tmp_path, good):
    shapes = {name: path for name, path in good.items() if not name.startswith("corpus")}
    found = hits(tmp_path, list(shapes.values()))
    problems = {
        name: {rule for rule in found[path][1] if COMPOSITION_RULE.search(rule)} for name, path in shapes.items()
    }
    assert {name: rules for name, rules in problems.items() if rules} == {}
    assert found[good["both"]][0] < 1


IMAGE = WITH_LOGO.partition("<img")[2].partition(">")[0]
PARAGRAPHS = (
    "<p>Dear Ada,</p><p>thank you for your order of two books and a lamp, which we have packed this morning and given "
    "to the carrier in Leipzig.</p><p>The box should be with you on Tuesday. If nobody is at home, the carrier "
    "leaves a note with the address of the nearest shop, where it waits for seven days.</p><p>You can return anything "
    "you do not like within thirty days; the form is in the box, and the way back is free of charge.</p>"
    '<p><a href="https://shop.example/orders/7">Your order</a></p>'
)
RESET = '<p>Hello Ada, <a href="https://shop.example/reset?token=abc">choose a new password</a> within an hour.</p>'
# The messages of docs/decisions/0206.
TRACKED = {
    "one line": "<p>Your code is 123456.</p>",
    "a sentence and a link": RESET,
    "short, with head and title": HTML,
    "short, with an inline image": WITH_LOGO,
    "short, with a linked image": WITH_LOGO.replace(
        f"<img{IMAGE}>", f'<a href="https://shop.example/"><img{IMAGE}></a>'
    ),
    "three paragraphs": f"<html><head><title>Your order</title></head><body>{PARAGRAPHS}</body></html>",
    "three paragraphs, with an inline image": f"<html><body><img{IMAGE}>{PARAGRAPHS}</body></html>",
    "a designed receipt": next(real.html for real in emails() if "receipt" in real.name),
}
PIXEL = "https://mail.alice.example/t/o/" + "AbCd_-12" * 7


def tracked_message(html: str, *, pixel_url: str | None) -> bytes:
    click = "https://mail.alice.example/t/c/" + "kL9_-xYz" * 18
    filled = fill(find_slots(html), link=lambda _: click, pixel_url=pixel_url, footer=html_footer(UNSUBSCRIBE))
    text = html_to_text(html) + text_footer(UNSUBSCRIBE)
    return outgoing_message(html=filled, text=text, files=(LOGO,) if "cid:" in html else ()).to_bytes()


IMAGE_RULES = re.compile(r"HTML_IMAGE_(ONLY|RATIO)_\d+")
MOST_POINTS, LONG_HTML = 2.05, 3_200


def test_the_pixel_costs_only_the_points_of_a_short_email_with_an_image(tmp_path):
    paths = {}
    for number, (name, html) in enumerate(TRACKED.items()):
        for pixel in (None, PIXEL):
            path = paths[name, pixel] = tmp_path / f"{number}-{bool(pixel)}.eml"
            path.write_bytes(tracked_message(html, pixel_url=pixel))
    found = hits(tmp_path, list(paths.values()))
    for name, html in TRACKED.items():
        (before, rules_before), (after, rules_after) = found[paths[name, None]], found[paths[name, PIXEL]]
        added = {rule for rule in rules_after - rules_before if not IMAGE_RULES.fullmatch(rule)}
        assert not added, (name, added)
        assert after <= before + MOST_POINTS, (name, before, after)
        if len(html) > LONG_HTML:
            assert after == before, (name, before, after)
