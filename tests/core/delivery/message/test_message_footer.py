"""Footer with the unsubscribe link, as text and as HTML."""

from core.delivery.message.footer import TEXTS, html_footer, text_footer
from core.delivery.message.text import html_to_text

URL = "https://mail.example/u/abc?x=1&y=<2>\"'"


def test_the_text_has_the_link_on_a_separate_line():
    assert URL in text_footer(URL).splitlines()


def test_the_fragment_has_one_link_with_an_escaped_url():
    fragment = html_footer(URL)
    assert fragment.count("<a ") == 1
    assert 'href="https://mail.example/u/abc?x=1&amp;y=&lt;2&gt;&quot;&#x27;"' in fragment
    assert html_to_text(fragment) == f"No longer want to receive these emails? Unsubscribe ({URL})\n"


def test_the_fragment_loads_nothing_and_sets_no_background():
    fragment = html_footer(URL)
    for harmful in ("<script", "<style", "<img", "background", "class=", "id="):
        assert harmful not in fragment.replace('width="100%"', "")


def test_the_footer_has_the_languages_of_the_pages(settings):
    assert set(TEXTS) == set(settings.RECIPIENT_LANGUAGES)


def test_the_footer_is_in_the_language_of_the_email_or_in_english():
    for locale, language, link in (
        ("de-AT", "de", "Abmelden"),
        ("fr-CA", "fr", "Se désabonner"),
        ("pl", "pl", "Zrezygnuj z subskrypcji"),
        ("pt", "en", "Unsubscribe"),
        (None, "en", "Unsubscribe"),
    ):
        assert f'lang="{language}"' in html_footer(URL, locale=locale), locale
        assert f">{link}</a>" in html_footer(URL, locale=locale), locale
        assert f" {link}:\n" in text_footer(URL, stream="News", locale=locale), locale
        assert "News" in html_footer(URL, stream="News", locale=locale)
