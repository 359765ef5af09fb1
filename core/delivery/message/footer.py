"""Footer with the unsubscribe link: text for the end of a text part, HTML for before </body>."""

from html import escape

# In HTML and text: the place of the recipient's unsubscribe link, in at most so many places (docs/decisions/0190).
UNSUBSCRIBE_PLACEHOLDER = "%unsubscribe_url%"
MAX_UNSUBSCRIBE_LINKS = 100
QUESTION = "No longer want to receive these emails?"
STREAM_QUESTION = "No longer want to receive “{stream}”?"
# Mid grey is readable on white (4.6:1) and on black (4.5:1): the dark mode of a mail program inverts the background
# only, or background and text. A table, because Outlook on Windows supports padding only in tables.
FRAGMENT = (
    '<table role="presentation" lang="en" dir="ltr" width="100%" cellpadding="0" cellspacing="0" border="0"'
    ' style="width:100%;border-collapse:collapse;clear:both"><tr>'
    '<td align="center" style="padding:24px 16px;text-align:center;color:#757575;'
    'font-family:-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif;font-size:12px;line-height:18px">'
    '{question} <a href="{url}" style="color:#757575;text-decoration:underline">Unsubscribe</a>'
    "</td></tr></table>"
)


def text_footer(unsubscribe_url: str, *, stream: str = "") -> str:
    """Return the footer of a text part. The URL is alone on its line, so that mail programs do not break it.

    stream: the name of the email's stream, if it has one.
    """
    # Not "-- ": mail programs hide the text after that mark as a signature.
    return f"\n\n----\n{_question(stream)} Unsubscribe:\n{unsubscribe_url}\n"


def html_footer(unsubscribe_url: str, *, stream: str = "") -> str:
    """Return the footer of an HTML part, with inline styles that suit any background."""
    return FRAGMENT.format(question=escape(_question(stream)), url=escape(unsubscribe_url))


def _question(stream: str) -> str:
    return STREAM_QUESTION.format(stream=stream) if stream else QUESTION
