"""Text of HTML with a ">" in front of each line of an element that quotes an earlier message (docs/decisions/0317).

Mail programs mark these elements by class, id or style, in every language. Tags are read in sequence, as for the text
of HTML (core.delivery.message.text).
"""

from collections.abc import Iterator

from core.delivery.message.text import TOKEN, html_to_text

# An element with one of these in its attributes contains a quote, or introduces one.
QUOTES = ("gmail_attr", "moz-cite-prefix", "yahoo_quoted", "protonmail_quote", "zmail_extra", "tutanota_quote")
# A blockquote without them is an indentation.
BLOCKQUOTES = ("gmail_quote", 'type="cite', "type='cite", "type=cite", "cite=", "border-left", "mailru-blockquote")
# Everything behind the beginning of such an element is an earlier message.
HEADERS = (
    "divrplyfwdmsg", "appendonsend", "outlookmessageheader", "olk_src_body_section", '"zwchr', "'zwchr",
    "mail-editor-reference-message-container", "ms-outlook-mobile-reference-message", "moz-forward-container",
    "moz-email-headers-table", "isforwardcontent", "border-top:solid #e1e1e1 1.0pt", "border-top:solid #b5c4df 1.0pt",
    "border-top: solid #e1e1e1 1.0pt", "border-top: solid #b5c4df 1.0pt",
)  # fmt: skip
MAX_PIECES = 500


def quoted_text(html: str) -> str | None:
    """Return the visible text with marks of quotes; None if nothing is quoted, or everything is."""
    if not _has(html, QUOTES + BLOCKQUOTES + HEADERS):
        return None
    texts = [(html_to_text(html[start:end]).strip(), is_quoted) for start, end, is_quoted in _pieces(html)]
    kinds = {is_quoted for text, is_quoted in texts if text}
    if kinds != {False, True}:
        return None
    return "\n".join("> " + text.replace("\n", "\n> ") if is_quoted else text for text, is_quoted in texts if text)


def _has(html: str, marks: tuple[str, ...]) -> bool:
    lowered = html.lower()
    return any(mark in lowered for mark in marks)


def _pieces(html: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the start and end of pieces of HTML, and whether they are quoted."""
    start, name, depth, count = 0, "", 0, 0
    for token in TOKEN.finditer(html):
        tag, attributes = (token[2] or "").lower(), token[3] or ""
        if name:
            depth += (tag == name) - (tag == f"/{name}")
            if depth:
                continue
            yield start, token.start(), True
            start, name = token.start(), ""
        elif attributes and (_has(attributes, HEADERS) or count >= MAX_PIECES):
            yield start, token.start(), False
            yield token.start(), len(html), True
            return
        elif attributes and (_has(attributes, QUOTES) or (tag == "blockquote" and _has(attributes, BLOCKQUOTES))):
            yield start, token.start(), False
            start, name, depth, count = token.start(), tag, 1, count + 1
    yield start, len(html), bool(name)
