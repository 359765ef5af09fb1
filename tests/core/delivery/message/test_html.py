"""HTML link slots: the replaced links, the footer's position, and every other byte unchanged."""

import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser

from core.delivery.message.html import (
    MAX_TARGET_BYTES,
    MAX_TRACKED_LINKS,
    fill,
    find_slots,
    has_untracked_links,
    is_trackable,
)
from tests.corpus import emails
from tests.rows import each

BUILDERS = {path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "builders").glob("*.html")}
CORPUS = {email.name: email.html for email in emails()} | BUILDERS
COMMENT = re.compile(r"<!--.*?--!?>", re.DOTALL)
FOOTER = '<p id="the-footer">Unsubscribe <a href="https://mail.example/u/1">here</a></p>'
PIXEL = "https://mail.example/t/o/1"


def tracked(target: str) -> str:
    return f"https://mail.example/t/c/{target.encode().hex()}"


def filled(html: str) -> str:
    return fill(find_slots(html), link=tracked, pixel_url=PIXEL, footer=FOOTER)


def targets(html: str) -> list[str]:
    return find_slots(html).targets


def links_of_a_browser(html: str) -> list[str]:
    """Return the trackable links that a standard HTML parser finds."""
    found = [
        (node.attributes.get("href") or "").strip()
        for node in LexborHTMLParser(html).css("a[href], area[href]")
        if "data-no-track" not in node.attributes
    ]
    return [re.sub(r"[\t\r\n]", "", href) for href in found if re.match(r"https?://[^/]", href, re.IGNORECASE)]


class LinksOfTheStandardLibrary(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        if tag in {"a", "area"} and "data-no-track" not in dict(attrs):
            first = dict(reversed(attrs)).get("href") or ""
            if re.match(r"\s*https?://[^/]", first, re.IGNORECASE):
                self.found.append(re.sub(r"[\t\r\n]", "", first.strip()))


@each("name", CORPUS)
def test_real_emails_have_the_links_that_browsers_find(name):
    html = COMMENT.sub("", CORPUS[name])
    assert targets(html) == links_of_a_browser(html)


# The standard library decodes &copy=1, unlike browsers, and handles neither svg nor malformed comments.
@each("name", sorted(CORPUS.keys() - {"shop_fragment", "word_processor", "invite_dark_mode"}))
def test_real_emails_have_the_links_that_the_standard_library_finds(name):
    html = COMMENT.sub("", CORPUS[name])
    assert targets(html) == LinksOfTheStandardLibrary(html).found


@each("name", CORPUS)
def test_real_emails_keep_every_other_byte(name):
    html = CORPUS[name]
    slots = find_slots(html)
    assert fill(slots, link=None, pixel_url=None, footer="") == html
    changed = fill(slots, link=lambda _: "\ue000", pixel_url=None, footer="")
    for link in (link for _, link in slots.segments if link):
        changed = changed.replace("\ue000" if link.is_quoted else '"\ue000"', link.source, 1)
    assert changed == html


@each("name", CORPUS)
def test_real_emails_look_the_same(name):
    before, after = LexborHTMLParser(CORPUS[name]), LexborHTMLParser(filled(CORPUS[name]))
    for node in after.css("#the-footer, img[src^='https://mail.example/t/o/']"):
        node.decompose()
    assert after.body.text() == before.body.text()
    assert [node.tag for node in after.css("*")] == [node.tag for node in before.css("*")]
    assert len(after.css("a[href]")) == len(before.css("a[href]"))


@each("name", CORPUS)
def test_footer_and_pixel_are_shown_in_the_body(name):
    tree = LexborHTMLParser(filled(CORPUS[name]))
    assert len(tree.css("body #the-footer")) == 1
    assert len(tree.css(f"body img[src='{PIXEL}']")) == 1


def test_the_pixel_is_one_plain_tag():
    html = "<p>Your code is 123456.</p>"
    pixel = filled(html).removeprefix(html).removeprefix(FOOTER)
    assert re.fullmatch(rf'<img src="{PIXEL}" width="1" height="1" alt="" style="[a-z0-9:;]+">', pixel)


@each("name", CORPUS)
def test_a_filled_email_leads_where_the_original_led(name):
    html = COMMENT.sub("", CORPUS[name])
    followed = [bytes.fromhex(url.rpartition("/")[2]).decode() for url in links_of_a_browser(filled(html))[:-1]]
    assert followed == links_of_a_browser(html)


SAME = "https://a.example/x"
LINKS = {
    "double quotes": f'<a href="{SAME}">',
    "single quotes": f"<a href='{SAME}'>",
    "no quotes": f"<a href={SAME}>",
    "no quotes, at the end of a tag": f"<a href={SAME}\n>",
    "capitals": f'<A HREF="{SAME}">',
    "an area": f'<area href="{SAME}">',
    "spaces around the sign": f'<a href\n=\t"{SAME}">',
    "spaces around the value": f'<a href=" \n{SAME}\t">',
    "a line end within": '<a href="https://a.exa\r\nmple/x">',
    "a slash for a space": f'<a/href="{SAME}"/>',
    "no space behind a value": f'<a class="b"href="{SAME}">',
    "a sign of greater in front": f'<a title="1 > 0" alt=\'>\' href="{SAME}">',
    "a stray quote in front": f'<a class="b"" href="{SAME}">',
    "a quote in a bare value": f'<a title=it\'s href="{SAME}">',
    "the first of two": f'<a href="{SAME}" href="https://b.example/">',
    "behind a name that begins alike": f'<a hreflang="en" data-href="https://b.example/" href="{SAME}">',
    "after an unquoted sign of equality": f'<a =x href="{SAME}">',
    "entities": '<a href="https&colon;//a&#46;ex&#x61;mple/x">',
    "in a paragraph that is never closed": f'<p><b><a href="{SAME}">',
    "in noscript": f'<noscript><a href="{SAME}"></noscript>',
    "behind an empty comment": f'<!--><a href="{SAME}"><!-- -->',
    "behind another empty comment": f'<!---><a href="{SAME}"><!-- -->',
    "behind a comment that ends oddly": f'<!-- a --!><a href="{SAME}">',
    "behind a comment with a quote": f'<!-- it\'s " --><a href="{SAME}">',
    "behind a bogus comment": f'<!x y><?php a ?></ b><a href="{SAME}">',
    "behind a smaller sign": f'1 < 2 <3 <- << <a href="{SAME}">',
    "behind a style": f'<style>a > b {{ content: "</p>" }}</STYLE ><a href="{SAME}">',
    "behind a template": f'<template><a href="https://b.example/"></template><a href="{SAME}">',
    "behind an svg": f'<svg><title/><style/></svg><a href="{SAME}">',
    "for Outlook": f'<!--[if (gte mso 9)|(IE)]><td><a href="{SAME}">x</a></td><![endif]-->',
    "for others than Outlook": f'<!--[if !mso]><!--><a href="{SAME}">x</a><!--<![endif]-->',
    "between bogus conditions": f'<![if !mso]><a href="{SAME}">x</a><![endif]>',
}


@each("html", LINKS.values())
def test_a_link_is_found(html):
    assert targets(html) == [SAME]
    assert targets(html + "</a>" + f'<a href="{SAME}2">') == [SAME, SAME + "2"]


OTHERS = {
    "a comment": f'<!-- <a href="{SAME}"> -->',
    "a comment that is never closed": f'<!-- <a href="{SAME}">',
    "a conditional comment that is never closed": f'<!--[if mso]><a href="{SAME}">',
    "a style": f'<style><a href="{SAME}"></style>',
    "a style that is never closed": f'<style><a href="{SAME}">',
    "a script": f"<script>\"<a href='{SAME}'>\"</script>",
    "a title": f'<title><a href="{SAME}"></title>',
    "a textarea": f'<textarea><a href="{SAME}"></textarea>',
    "a template": f'<template><p><a href="{SAME}"></p></template>',
    "a template that is never closed": f'<template><a href="{SAME}">',
    "character data": f'<svg><![CDATA[ <a href="{SAME}"><a href="{SAME}"> ]]></svg>',
    "an attribute": f"<p title='<a href=\"{SAME}\">'>",
    "another attribute": f"<a title='href=\"{SAME}\"'>",
    "a name that begins alike": f'<a xhref="{SAME}" hrefs="{SAME}">',
    "another tag": f'<link href="{SAME}"><abbr href="{SAME}"><base href="{SAME}">',
    "the second of two": f'<a href="#" href="{SAME}">',
    "behind one without a value": f'<a href href="{SAME}">',
    "an end tag": f'</a href="{SAME}">',
    "a tag that is never closed": f'<a href="{SAME}"',
    "a quote that is never closed": f'<a href="{SAME}>',
    "an image": f'<img src="{SAME}">',
    "marked": f'<a href="{SAME}" data-no-track>',
    "marked in front": f'<a data-no-track="" href="{SAME}">',
    "marked in capitals": f'<a DATA-NO-TRACK=1 href="{SAME}">',
    "mailto": '<a href="mailto:ada@a.example">',
    "tel": '<a href="tel:+49301234">',
    "a fragment": '<a href="#x">',
    "a path": '<a href="/x">',
    "a relative path": '<a href="x?http://a.example">',
    "no scheme": '<a href="//a.example/">',
    "one slash": '<a href="https:/a.example">',
    "no slash": '<a href="https:a.example">',
    "no host": '<a href="https://">',
    "no host but a path": '<a href="https:///x">',
    "javascript": '<a href="javascript:alert(1)//https://a.example">',
    "javascript in disguise": '<a href=" java\nscript:alert(1)">',
    "data": '<a href="data:text/html,https://a.example">',
    "cid": '<a href="cid:a">',
    "ftp": '<a href="ftp://a.example/">',
    "a backslash": '<a href="https://a.example\\@b.example/">',
    "a control character": '<a href="https://a.example/\x01x">',
    "too long": f'<a href="{SAME}{"x" * MAX_TARGET_BYTES}">',
}


@each("html", OTHERS.values())
def test_html_without_a_trackable_link_is_unchanged(html):
    assert targets(html) == []
    assert fill(find_slots(html), link=tracked, pixel_url=None, footer="") == html


def test_a_similar_attribute_or_a_title_does_not_disable_tracking():
    html = f'<a href="{SAME}" data-no-tracking title="data-no-track">'
    assert targets(html) == [SAME]


@each("quote", ['"', "'", ""])
@each(("source", "target"), [
    ("https://a.example/?a=1&amp;b=2", "https://a.example/?a=1&b=2"),
    ("https://a.example/?a=1&b=2", "https://a.example/?a=1&b=2"),
    ("https://a.example/?a=1&copy=2&reg=3&section=4", "https://a.example/?a=1&copy=2&reg=3&section=4"),
    ("https://a.example/?a=1&copy;=2", "https://a.example/?a=1©=2"),
    ("https://a.example/?a&amp", "https://a.example/?a&"),
    ("https://a.example/?a&amp;copy=1&amp;amp;", "https://a.example/?a&copy=1&amp;"),
    ("https://a.example/?a&ampb=1&nosuch;", "https://a.example/?a&ampb=1&nosuch;"),
    ("https://a.example/&#47;&#x2F;&#47x", "https://a.example////x"),
    ("https://a.example/%20%zz+", "https://a.example/%20%zz+"),
    ("https://ü.example/ß?q=日本#é", "https://ü.example/ß?q=日本#é"),
])  # fmt: skip
def test_a_target_is_decoded_as_by_browsers(quote, source, target):
    html = f"<a href={quote}{source}{quote}>x</a>"
    assert targets(html) == [target] == links_of_a_browser(html)


def test_a_target_may_have_the_maximum_length():
    target = f"https://a.example/{'x' * (MAX_TARGET_BYTES - 18)}"
    assert targets(f'<a href="{target}"><a href="{target}x">') == [target]


LINK = '<a href="https://a.example/{}">x</a>'


def test_only_the_first_500_links_are_tracked():
    outlook = f"<!--[if mso]>{LINK.format(2)}<![endif]-->"
    plain = '<a href="mailto:a@a.example">x</a><abbr>x</abbr>'
    last = "".join(LINK.format(number) for number in range(3, 600))
    html = f"<body>{LINK.format(1)}{outlook}{plain}{last}</body>"
    assert targets(html) == [f"https://a.example/{number}" for number in range(1, 501)]
    done = filled(html)
    assert LINK.format(501) in done
    assert LINK.format(500) not in done
    assert "the-footer" in done[done.index(LINK.format(599)) :]


@each(("count", "expected"), [(MAX_TRACKED_LINKS, False), (MAX_TRACKED_LINKS + 1, True)])
def test_more_links_than_are_tracked_are_noticed(count, expected):
    untracked = '<abbr>x</abbr><a href="mailto:a@a.example">x</a>' * 600
    html = "".join(LINK.format(number) for number in range(count))
    assert has_untracked_links(untracked + html.replace("<a", "<A")) is expected


def test_a_tracking_url_is_escaped_for_its_quotes():
    html = f"<a href={SAME}/><a href='{SAME}'><a href=\"{SAME}\">"
    changed = fill(find_slots(html), link=lambda _: "https://b.example/?a=1&b='\">", pixel_url=None, footer="")
    escaped = "https://b.example/?a=1&amp;b=&#x27;&quot;&gt;"
    assert changed == f'<a href="{escaped}"><a href=\'{escaped}\'><a href="{escaped}">'
    assert unescape(escaped) == "https://b.example/?a=1&b='\">"


HERE = "[here]"
PLACES = [
    "<html><body><p>x</p>[here]</body></html>", "<BODY>x[here]</BODY\n></HTML>", "<body>x</body><body>y[here]</body>",
    "<html><p>x[here]</html>", "<p>x</p>[here]", "[here]", "text alone[here]",
    "<table><tr><td>x</td></tr></table>[here]", "<table><tr><td>x[here]</body>", "x[here]</body><!-- </body> -->",
    "x[here]</body><style></body></style>", "x[here]</body><!-- never closed </body>",
    "x<!-- </body> --><!--[if mso]></body><![endif]-->[here]", "x<script>'</body>'</script>[here]",
    "x<p title='</body>'>[here]", "x<template></body></template>[here]</body>", "x[here]<!-- never closed",
    "x[here]<!--[if mso]>never closed <p>", "x[here]<style>never closed", "x[here]<textarea>never closed </body>",
    "x[here]<a href='never closed </body>", "x[here]<p class=", "x[here]<p", "x[here]</p", "x[here]<!never closed",
    "x[here]<template><p>never closed</p>", "x<br/>[here]<plaintext></body>", "x <[here]", "x[here]</",
]  # fmt: skip


@each("page", PLACES)
def test_footer_and_pixel_follow_the_visible_content(page):
    html = page.replace(HERE, "")
    assert fill(find_slots(html), link=None, pixel_url=None, footer=HERE) == page
    tree = LexborHTMLParser(filled(html))
    assert len(tree.css("body #the-footer")) == 1
    assert len(tree.css(f"body img[src='{PIXEL}'][width='1'][height='1'][alt='']")) == 1


def test_an_open_table_does_not_swallow_the_footer():
    for html in ("<table><tr>", "<table><tr><td>x", "<table><tbody></body>", "<ul><li>x"):
        tree = LexborHTMLParser(filled(html))
        assert "Unsubscribe here" in tree.body.text()


PIECES = st.sampled_from(
    [
        *("<", ">", "</", "/>", "=", '"', "'", "&", ";", " ", "\n", "!", "-", "x", "[if mso]", "]>", "&amp;", "&#47;"),
        *("<!--", "-->", "--!>", "<!-->", "<!", "<?", "<!--[if mso]>", "<![endif]-->", "<p ", "<p>", "<b>", "</b>"),
        *('<a href="https://a.example/1">', "<a href='http://b.example/'>", "<a href=https://c.example/>", "</a>"),
        *("<a ", "<A\thref", ' href="', " href=", "https://d.example/", ' class="a > b"', " data-no-track", "<area "),
        *("<style>", "</style>", "<title>", "</title>", "<textarea>", "</textarea>", "</body>", "</html>", "<div>"),
    ]
)
SOUP = st.lists(PIECES, max_size=30).map("".join)


@given(html=st.one_of(SOUP, st.text(max_size=200)))
def test_any_html_keeps_every_other_byte(html):
    slots = find_slots(html)
    assert fill(slots, link=None, pixel_url=None, footer="") == html
    assert "".join(text + (link.source if link else "") for text, link in slots.segments) + slots.tail == html
    assert all(is_trackable(target) for target in slots.targets)


@given(html=SOUP)
def test_any_html_has_the_links_that_browsers_find(html):
    bare = html.replace("[if mso]", "")
    assert set(targets(bare)) == {link for link in links_of_a_browser(bare) if is_trackable(link)}


@given(html=SOUP)
def test_any_html_shows_the_footer(html):
    tree = LexborHTMLParser(filled(html))
    assert len(tree.css("body #the-footer")) >= 1
    assert len(tree.css(f"body img[src='{PIXEL}']")) == 1
