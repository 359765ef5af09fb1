"""Places of the unsubscribe link; tests/interfaces/compat/test_unsubscribe_placeholders.py has whole emails."""

from core.delivery.message.unsubscribe_places import has_placeholder


def test_the_placeholder_is_found_in_each_spelling_of_editors():
    spellings = (
        "%unsubscribe_url%",
        "http://%unsubscribe_url%/",
        "%25unsubscribe_url%25",
        "%2525unsubscribe_url%2525",
        "&#37;unsubscribe_url&percnt;",
        "<!-- %unsubscribe_url% -->",
    )
    assert [text for text in spellings if not has_placeholder(text)] == []
    others = ("", "unsubscribe_url", "%unsubscribe_url", "%unsubscribe_urls%", "%{unsubscribe_url}%", "%unsubscribe%")
    assert [text for text in others if has_placeholder(text)] == []
