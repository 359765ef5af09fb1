"""The text part of an email that was given as HTML alone."""

import re

from selectolax.lexbor import LexborHTMLParser

UNSEEN = ("head", "style", "script", "template")
BLOCKS = "p, div, tr, li, h1, h2, h3, h4, h5, h6, table, blockquote, br"


def text_of_html(html: str) -> str:
    """Return the visible text, a line for each block, with the targets of links behind them."""
    tree = LexborHTMLParser(html)
    for tag in UNSEEN:
        for node in tree.css(tag):
            node.decompose()
    for link in tree.css("a[href]"):
        target = link.attributes.get("href") or ""
        if target.startswith(("http://", "https://", "mailto:")) and target not in link.text():
            link.insert_child(f" ({target})")
    for cell in tree.css("td, th"):
        cell.insert_after(" ")
    for block in tree.css(BLOCKS):
        block.insert_after("\n")
    return _tidy(tree.body.text() if tree.body else "")


def _tidy(text: str) -> str:
    lines = (re.sub(r"[^\S\n]+", " ", line).strip() for line in text.splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
