import time

from interfaces.inbound.inbox.html_check import CHECKED_CHARACTERS, GMAIL_LIMIT_BYTES, RULES, check_html
from tests.rows import each

CLEAN = """<!DOCTYPE html><html><head><style>@media (max-width: 600px) { p { color: red } }</style></head>
<body style="background-color: #fff"><table><tr><td><a href="https://example.com/?a=b">Link</a>
<a href='mailto:ada@example.com'>Mail</a> <a href="#top">Top</a> <a href="">Empty</a>
<img src="cid:logo" alt=""><img alt="Logo" src="//example.com/a.png"></td></tr></table></body></html>"""


def problems(html: str, *, has_text: bool = True) -> list[str]:
    return check_html(html, has_text=has_text)


def test_common_email_markup_has_no_problems():
    assert problems(CLEAN) == []


@each(("html", "words"), [
    ("<SCRIPT>x</SCRIPT>", "Scripts"),
    ("<input name=a>", "Forms"),
    ("<video src='https://example.com/v'></video>", "Embedded media"),
    ('<link rel="stylesheet" href="https://example.com/a.css">', "External style sheets"),
    ("<style>@font-face { font-family: x }</style>", "Web fonts"),
    ("<svg></svg>", "SVG"),
    ('<img alt="" src="data:image/png;base64,AA">', "data: URLs"),
    ('<img src="https://example.com/a.png">', "alternative text"),
    ('<p style="display : flex">', "flexbox"),
    ('<p style="display:inline-grid">', "flexbox"),
    ('<p style="position:absolute">', "Positioned"),
    ("<p style='background-image:url(https://example.com/a)'>", "background images"),
    ('<a href="/reset">', "Relative links"),
    ('<img alt="" src="logo.png">', "Relative links"),
])  # fmt: skip
def test_markup_that_clients_treat_differently_is_a_problem(html, words):
    (problem,) = problems(html)

    assert words in problem


def test_long_html_and_a_missing_text_version_are_problems():
    assert problems("é" * (GMAIL_LIMIT_BYTES // 2)) == []
    assert "102 kB" in problems("é" * (GMAIL_LIMIT_BYTES // 2) + "x")[0]
    assert "no text version" in problems("<p>Hi</p>", has_text=False)[0]


@each("piece", ["<img ", "<link ", "href=", "display", "position:", "<", " ", "src = ", '"'])
def test_hostile_html_takes_linear_time(piece):
    html = piece * (CHECKED_CHARACTERS // len(piece))
    started = time.process_time()

    for rule in RULES:
        rule.pattern.search(html)

    # Quadratic time would be minutes.
    assert time.process_time() - started < 20
