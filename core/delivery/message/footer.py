"""Footer with the unsubscribe link: text for the end of a text part, HTML for before </body>."""

from html import escape
from typing import NamedTuple

# In HTML and text: the place of the recipient's unsubscribe link, in at most so many places (docs/decisions/0190).
UNSUBSCRIBE_PLACEHOLDER = "%unsubscribe_url%"
MAX_UNSUBSCRIBE_LINKS = 100


class FooterTexts(NamedTuple):
    """The texts of the footer in one language."""

    question: str
    stream_question: str
    link: str


# Languages without an entry have the footer in English.
ENGLISH = "en"
TEXTS = {
    ENGLISH: FooterTexts(
        "No longer want to receive these emails?", "No longer want to receive “{stream}”?", "Unsubscribe"
    ),
    "de": FooterTexts(
        "Möchten Sie diese E-Mails nicht mehr erhalten?",
        "Möchten Sie „{stream}“ nicht mehr erhalten?",
        "Abmelden",
    ),
    "es": FooterTexts("¿Ya no quiere recibir estos correos?", "¿Ya no quiere recibir «{stream}»?", "Darse de baja"),
    "fr": FooterTexts(
        "Vous ne souhaitez plus recevoir ces e-mails ?",
        "Vous ne souhaitez plus recevoir « {stream} » ?",
        "Se désabonner",
    ),
    "it": FooterTexts(
        "Non vuole più ricevere queste e-mail?", "Non vuole più ricevere «{stream}»?", "Annulla l'iscrizione"
    ),
    "nl": FooterTexts("Wilt u deze e-mails niet meer ontvangen?", "Wilt u “{stream}” niet meer ontvangen?", "Afmelden"),
    "pl": FooterTexts(
        "Nie chcą Państwo otrzymywać tych wiadomości?",
        "Nie chcą Państwo otrzymywać „{stream}”?",
        "Zrezygnuj z subskrypcji",
    ),
}
# Mid grey is readable on white (4.6:1) and on black (4.5:1): the dark mode of a mail program inverts the background
# only, or background and text. A table, because Outlook on Windows supports padding only in tables.
FRAGMENT = (
    '<table role="presentation" lang="{language}" dir="ltr" width="100%" cellpadding="0" cellspacing="0" border="0"'
    ' style="width:100%;border-collapse:collapse;clear:both"><tr>'
    '<td align="center" style="padding:24px 16px;text-align:center;color:#757575;'
    'font-family:-apple-system,Segoe UI,Roboto,Helvetica,Arial,sans-serif;font-size:12px;line-height:18px">'
    '{question} <a href="{url}" style="color:#757575;text-decoration:underline">{link}</a>'
    "</td></tr></table>"
)


def text_footer(unsubscribe_url: str, *, stream: str = "", locale: str | None = None) -> str:
    """Return the footer of a text part. The URL is alone on its line, so that mail programs do not break it.

    stream: the name of the email's stream, if it has one.
    locale: the language of the email.
    """
    texts = TEXTS[footer_language(locale)]
    # Not "-- ": mail programs hide the text after that mark as a signature.
    return f"\n\n----\n{_question(texts, stream)} {texts.link}:\n{unsubscribe_url}\n"


def html_footer(unsubscribe_url: str, *, stream: str = "", locale: str | None = None) -> str:
    """Return the footer of an HTML part, with inline styles that suit any background."""
    language = footer_language(locale)
    texts = TEXTS[language]
    return FRAGMENT.format(
        language=language,
        question=escape(_question(texts, stream)),
        url=escape(unsubscribe_url),
        link=escape(texts.link),
    )


def footer_language(locale: str | None) -> str:
    """Return the language of the footer of an email in a locale."""
    language = (locale or ENGLISH).partition("-")[0]
    return language if language in TEXTS else ENGLISH


def _question(texts: FooterTexts, stream: str) -> str:
    return texts.stream_question.format(stream=stream) if stream else texts.question
