"""The footer with the unsubscribe link, as text and as HTML.

Whoever makes a letter puts them in: the text at the end of a text part, the fragment in front of </body>.
"""

from html import escape

QUESTION = "No longer want to receive these emails?"
# Mid grey on whatever lies beneath: readable on white (4.6:1) and on black (4.5:1), since a mail program's dark mode
# turns backgrounds and leaves colours, or turns both. A table, because Outlook on Windows pads nothing else.
FRAGMENT = (
    '<table role="presentation" lang="en" dir="ltr" width="100%" cellpadding="0" cellspacing="0" border="0"'
    ' style="width:100%;border-collapse:collapse;clear:both"><tr>'
    '<td align="center" style="padding:24px 16px;text-align:center;color:#757575;'
    'font-family:-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif;font-size:12px;line-height:18px">'
    '{question} <a href="{url}" style="color:#757575;text-decoration:underline">Unsubscribe</a>'
    "</td></tr></table>"
)


def text_footer(unsubscribe_url: str) -> str:
    """Return what is put behind a text; the URL has a line of its own, so that no mail program cuts it."""
    # Not "-- ": behind that mark readers hide what follows as a signature.
    return f"\n\n----\n{QUESTION} Unsubscribe:\n{unsubscribe_url}\n"


def html_footer(unsubscribe_url: str) -> str:
    """Return a fragment with styles of its own, on whatever background it is put."""
    return FRAGMENT.format(question=QUESTION, url=escape(unsubscribe_url))
