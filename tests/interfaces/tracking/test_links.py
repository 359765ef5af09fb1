"""Recipient links: their content, their confidentiality, and their protection against forgery."""

import base64

import pytest
from django.test import Client

from core.delivery.message.html import MAX_TARGET_BYTES
from core.lib.ids import new_id
from core.lib.tokens import InvalidToken, make_token
from emails.links import click_url, open_url, read_click, read_open, read_unsubscribe, unsubscribe_url
from emails.models import HitCount
from events.models import Event
from interfaces.tracking.recorder import recorder
from suppressions.models import Suppression
from tests.interfaces.tracking.conftest import TARGET, Reader, make_reader
from tests.rows import each

RECIPIENT, WORKSPACE = new_id(), new_id("ws_")
ADDRESS = "ada@example.com"


def token_of(url: str) -> str:
    return url.rpartition("/")[2]


def test_links_begin_with_the_public_url_and_can_be_read_back(settings):
    settings.PUBLIC_URL = "https://mail.example"
    opened, clicked = open_url(RECIPIENT), click_url(RECIPIENT, workspace_id=WORKSPACE, target=TARGET)
    unsubscribed = unsubscribe_url(RECIPIENT, workspace_id=WORKSPACE, address=ADDRESS)
    assert opened.startswith("https://mail.example/t/o/")
    assert clicked.startswith("https://mail.example/t/c/")
    assert unsubscribed.startswith("https://mail.example/u/")
    assert read_open(token_of(opened)) == RECIPIENT
    link = read_click(token_of(clicked))
    assert (link.workspace_id, link.recipient_id, link.target) == (WORKSPACE, RECIPIENT, TARGET)
    link_data = read_unsubscribe(token_of(unsubscribed))
    assert (link_data.workspace_id, link_data.recipient_id, link_data.address) == (WORKSPACE, RECIPIENT, ADDRESS)


def test_links_are_the_same_on_every_attempt():
    assert click_url(RECIPIENT, workspace_id=WORKSPACE, target=TARGET) == click_url(
        RECIPIENT, workspace_id=WORKSPACE, target=TARGET
    )
    assert open_url(RECIPIENT) != open_url(new_id())


def test_a_link_shows_no_address_and_no_target():
    url = unsubscribe_url(RECIPIENT, workspace_id=WORKSPACE, address=ADDRESS) + click_url(
        RECIPIENT, workspace_id=WORKSPACE, target=TARGET
    )
    raw = base64.urlsafe_b64decode(token_of(url) + "==")
    for secret in ("ada", "example.com", "shop", RECIPIENT):
        assert secret not in url
        assert secret.encode() not in raw


def test_the_longest_unsubscribe_header_fits_one_line(settings):
    settings.PUBLIC_URL = f"https://{'.'.join(['x' * 60] * 4)}.example:65535"
    url = unsubscribe_url(RECIPIENT, workspace_id=WORKSPACE, address=f"{'a' * 64}@{'b' * 185}.com")
    assert len(f"List-Unsubscribe: <{url}>") <= 998
    assert url.isascii()


def test_the_longest_click_link_fits_old_mail_readers(settings):
    settings.PUBLIC_URL = "https://a-rather-long-name.of-a-mail-service.example"
    target = "https://shop.example/".ljust(MAX_TARGET_BYTES, "x")
    assert len(click_url(RECIPIENT, workspace_id=WORKSPACE, target=target)) <= 2083


@each("target", ["https://ü.example/日本?q=ß", "http://a.example", "https://a.example/ b"])
def test_any_target_can_be_read_back(target):
    assert read_click(token_of(click_url(RECIPIENT, workspace_id=WORKSPACE, target=target))).target == target


@each(
    "target",
    ["javascript:alert(1)", "data:text/html,x", "//evil.example", "ftp://a.example", "https:a", "http://a\r\nX: y", ""],
)
def test_a_forbidden_target_is_refused_even_in_a_valid_token(target, visitor: Client):
    url = click_url(RECIPIENT, workspace_id=WORKSPACE, target=target)
    with pytest.raises(InvalidToken):
        read_click(token_of(url))
    response = visitor.get(f"/t/c/{token_of(url)}")
    assert (response.status_code, response.get("Location")) == (404, None)


def test_a_payload_that_is_too_short_is_invalid():
    for purpose, read in (("open", read_open), ("click-of-workspace", read_click), ("unsubscribe", read_unsubscribe)):
        with pytest.raises(InvalidToken):
            read(make_token(b"x" * 15, purpose=purpose))


def flipped(token: str) -> list[str]:
    """Return a token with each of its bits flipped."""
    data = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))
    others = [data[:i] + bytes([data[i] ^ 1 << bit]) + data[i + 1 :] for i in range(len(data)) for bit in range(8)]
    return [base64.urlsafe_b64encode(other).rstrip(b"=").decode() for other in others]


def damaged(token: str) -> list[str]:
    """Return a token as mail clients and people damage it, and with some bits flipped."""
    others = [token[:-1], token[1:], token + "A", token + "=", token * 2, token.swapcase(), "x", "%00", token + "/x"]
    return [*others, *flipped(token)[::37]]


def tracking_rows() -> list[list[dict]]:
    return [list(model.objects.order_by("pk").values()) for model in (Event, HitCount, Suppression)]


@pytest.fixture
def tokens_by_path(reader: Reader) -> dict[str, str]:
    """A valid token for each kind of link, by the start of its path."""
    paths = (reader.pixel_path, reader.click_path(), reader.unsubscribe_path)
    return {path[: path.rindex("/") + 1]: token_of(path) for path in paths}


def test_a_changed_token_does_nothing_and_does_not_redirect(reader: Reader, tokens_by_path, visitor: Client):
    before, state = tracking_rows(), reader.recipient.state
    for path, token in tokens_by_path.items():
        for other in damaged(token):
            for method in (visitor.get, visitor.post):
                response = method(f"{path}{other}")
                assert response.status_code in ({200, 405} if path == "/t/o/" else {404, 405}), other
                assert "Location" not in response
    assert not recorder._rows
    reader.recipient.refresh_from_db()
    assert (tracking_rows(), reader.recipient.state) == (before, state)


def test_a_token_of_another_purpose_does_nothing_and_does_not_redirect(reader: Reader, tokens_by_path, visitor: Client):
    before = tracking_rows()
    for path in tokens_by_path:
        for token in (token for other, token in tokens_by_path.items() if other != path):
            for method in (visitor.get, visitor.post):
                response = method(f"{path}{token}")
                assert response.status_code in ({200, 405} if path == "/t/o/" else {404, 405})
                assert "Location" not in response
    recorder.flush()
    assert tracking_rows() == before


def test_a_token_works_only_in_its_workspace(reader: Reader, bob, visitor: Client):
    other = make_reader(bob.workspace)
    visitor.post(reader.unsubscribe_path)
    reader.clicks()
    assert list(Suppression.objects.values_list("workspace_id", flat=True)) == [reader.workspace.id]
    assert other.kinds() == []
    forged = unsubscribe_url(reader.recipient.id, workspace_id=bob.workspace.id, address=reader.recipient.address)
    visitor.post(f"/u/{token_of(forged)}")
    # Such a token is never issued; even if it were, it adds no event to the email of another workspace.
    assert reader.kinds().count("unsubscribed") == 1
