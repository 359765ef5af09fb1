"""The tracking pixel and the click redirect: responses to valid and invalid requests."""

from django.test import Client

from core.lib.ids import new_id
from events.models import Event
from interfaces.tracking.recorder import recorder
from tests.interfaces.tracking.conftest import BROWSER, TARGET, Reader
from tests.rows import each

PREFETCHERS = [
    {"sec-purpose": "prefetch"}, {"sec-purpose": "prefetch;prerender"}, {"purpose": "prefetch"},
    {"x-purpose": "preview"}, {"x-moz": "prefetch"},
]  # fmt: skip
BOTS = [
    "", "Mozilla/5.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/42.0 Safari/537.36 Edge/12.246 Mozilla/5.0",
    "BarracudaCentral/1.0", "Mozilla/5.0 (compatible; Proofpoint URL Defense)",
    "Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)",
    "facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)",
    "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)", "python-requests/2.32.3", "curl/8.5.0",
]  # fmt: skip
PEOPLE = [
    BROWSER,
    # Image proxies that fetch when a person opens the message.
    "Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)",
    "YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html",
    "Mozilla/5.0 (Windows NT 10.0; WOW64; rv:128.0) Gecko/20100101 Thunderbird/128.5.0",
    "Mozilla/4.0 (compatible; ms-office; MSOffice 16)",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148",
    "Mozilla/5.0 (Linux; Android 9; CUBOT_X19) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/120.0 Safari/537.36",
]


def test_the_pixel_is_a_small_transparent_gif_without_caching(reader: Reader):
    response = reader.loads_the_pixel()
    assert (response.status_code, response["Content-Type"], len(response.content)) == (200, "image/gif", 43)
    assert response.content.startswith(b"GIF89a\x01\x00\x01\x00")
    assert (response["Cache-Control"], response["Referrer-Policy"]) == ("no-store", "no-referrer")


@each("token", ["x", "x/y", "%00", "é", "A" * 44, "A" * 3000, "../admin"])
def test_the_pixel_of_an_invalid_token_looks_like_any_other(db, reader: Reader, visitor: Client, token):
    valid, invalid = reader.loads_the_pixel(), visitor.get(f"/t/o/{token}")
    ours = {name: value for name, value in valid.items() if name != "X-Request-Id"}
    assert {name: value for name, value in invalid.items() if name != "X-Request-Id"} == ours
    assert (invalid.status_code, invalid.content) == (valid.status_code, valid.content)
    assert len(reader.events()) == 1


def test_a_click_redirects_to_the_target_without_caching(reader: Reader):
    response = reader.clicks()
    assert (response.status_code, response["Location"]) == (302, TARGET)
    assert (response["Cache-Control"], response["Referrer-Policy"]) == ("no-store", "no-referrer")
    assert response["X-Robots-Tag"].startswith("noindex")
    assert not response.cookies


@each(("target", "location"), [
    ("http://a.example", "http://a.example"),
    ("HTTPS://A.example/%7Eb?c=%20d&e=1+2#f", "HTTPS://A.example/%7Eb?c=%20d&e=1+2#f"),
    ("https://a.example/日本?q=ü#ß", "https://a.example/%E6%97%A5%E6%9C%AC?q=%C3%BC#%C3%9F"),
    ("https://töpfer.example/", "https://t%C3%B6pfer.example/"),
    ('https://a.example/ b"<c>', "https://a.example/%20b%22%3Cc%3E"),
    ("https://[2001:db8::1]:8443/p", "https://[2001:db8::1]:8443/p"),
    ("https://a.example/[x", "https://a.example/[x"),
    ("https://a.example/" + "x" * 1300, "https://a.example/" + "x" * 1300),
])  # fmt: skip
def test_a_target_is_recorded_as_written_and_redirected_to_as_browsers_encode_it(reader: Reader, target, location):
    assert reader.clicks(target)["Location"] == location
    assert reader.events()[0][1]["url"] == target


def test_an_invalid_link_shows_a_page_and_does_not_redirect(db, visitor: Client):
    for token in ("x", "https://evil.example/", "%2F%2Fevil.example", "A" * 60):
        response = visitor.get(f"/t/c/{token}", {"url": "https://evil.example"})
        assert (response.status_code, response.get("Location")) == (404, None)
        assert "This link does not work" in response.text
        assert response["Content-Security-Policy"].startswith("default-src 'none'")
        assert "evil" not in response.text


def test_a_query_string_after_a_link_is_ignored(reader: Reader, visitor: Client):
    response = visitor.get(reader.click_path(), {"url": "https://evil.example", "next": "//evil.example"})
    assert response["Location"] == TARGET


def test_a_head_request_has_the_same_response_and_is_never_an_event(reader: Reader, visitor: Client):
    for path in (reader.pixel_path, reader.click_path()):
        head, get = visitor.head(path), visitor.get(path)
        recorder._rows.clear()
        assert head.status_code == get.status_code
        assert head.get("Location") == get.get("Location")
        assert head.content == b""
    recorder.flush()
    assert reader.events() == []
    visitor.head(reader.pixel_path)
    assert not recorder._rows


@each("method", ["post", "put", "patch", "delete", "options"])
def test_other_methods_are_refused(reader: Reader, visitor: Client, method):
    for path in (reader.pixel_path, reader.click_path()):
        response = getattr(visitor, method)(path)
        assert (response.status_code, response["Allow"]) == (405, "GET, HEAD")
    assert not recorder._rows


@each("headers", PREFETCHERS)
def test_a_prefetch_is_marked_as_a_bot_and_counts(reader: Reader, headers):
    assert reader.clicks(**headers)["Location"] == TARGET
    assert reader.events()[0][1]["machine"] is True
    assert reader.recipient.state == "clicked"


@each("agent", BOTS)
def test_a_bot_by_its_user_agent_is_marked_and_counts(reader: Reader, agent):
    reader.loads_the_pixel(user_agent=agent)
    assert reader.events()[0][1]["machine"] is True
    assert reader.recipient.state == "opened"


@each("agent", PEOPLE)
def test_mail_clients_and_browsers_of_people_are_not_marked(reader: Reader, agent):
    reader.loads_the_pixel(user_agent=agent)
    assert reader.events()[0][1]["machine"] is False


def test_the_pixel_and_links_use_no_database_query(reader: Reader, visitor: Client, django_assert_num_queries):
    with django_assert_num_queries(0):
        visitor.get(reader.pixel_path)
        visitor.get(reader.click_path())
        visitor.get("/t/c/broken")


def test_a_link_redirects_after_the_email_is_deleted(reader: Reader, visitor: Client):
    path = reader.click_path()
    reader.email.delete()
    assert visitor.get(path)["Location"] == TARGET
    assert recorder.flush()
    assert not Event.objects.exists()


def test_other_paths_are_not_found(db, visitor: Client):
    for path in ("/t/", "/t/o/", "/t/x/abc", "/u/", f"/t/{new_id()}"):
        assert visitor.get(path).status_code == 404
