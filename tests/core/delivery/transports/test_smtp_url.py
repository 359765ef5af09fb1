import pytest

from core.delivery.transports.smtp.login import Login
from core.delivery.transports.smtp.smtp_url import InvalidSmtpUrl, RelayUrl, parse_smtp_url
from core.delivery.transports.smtp.tls import TlsMode
from tests.rows import each


@each(("url", "wanted"), [
    ("smtp://relay.example", RelayUrl("relay.example", 587, TlsMode.OPPORTUNISTIC)),
    ("smtp://relay.example:25", RelayUrl("relay.example", 25, TlsMode.OPPORTUNISTIC)),
    ("smtp://u:p@relay.example", RelayUrl("relay.example", 587, TlsMode.REQUIRED, Login("u", "p"))),
    ("smtps://u:p@relay.example", RelayUrl("relay.example", 465, TlsMode.IMPLICIT, Login("u", "p"))),
    ("smtps://relay.example:2465/", RelayUrl("relay.example", 2465, TlsMode.IMPLICIT)),
    ("smtp://relay.example?tls=none", RelayUrl("relay.example", 587, TlsMode.NONE)),
    ("smtp://relay.example?tls=required", RelayUrl("relay.example", 587, TlsMode.REQUIRED)),
    ("smtp://[2001:db8::1]:25?tls=none", RelayUrl("2001:db8::1", 25, TlsMode.NONE)),
    (
        "smtp://a%40b:p%3A%2F%23%C3%A4@h.example",
        RelayUrl("h.example", 587, TlsMode.REQUIRED, Login("a@b", "p:/#ä")),
    ),
])  # fmt: skip
def test_a_url_names_a_relay(url, wanted):
    assert parse_smtp_url(url) == wanted


@each(("url", "message"), [
    ("", "must begin with smtp://"), ("relay.example:587", "must begin with smtp://"),
    ("http://relay.example", "must begin with smtp://"), ("smtp://", "has no host"), ("smtp://u:p@", "has no host"),
    ("smtp://relay.example:mail", "is invalid"), ("smtp://relay.example:99999", "is invalid"),
    ("smtp://[::1", "is invalid"), ("smtp://relay.example/path", "Encode"),
    ("smtp://u:pa/ss@relay.example", "is invalid|Encode"), ("smtp://u@relay.example", "both a user and a password"),
    ("smtp://:p@relay.example", "both a user and a password"), ("smtp://relay.example?tls=maybe", "tls must be one of"),
    ("smtp://relay.example?tls=", "tls must be one of"), ("smtp://relay.example?tsl=none", "not supported"),
    ("smtp://u:secret@relay.example?tls=none", "never sent without TLS"),
    ("smtp://u:secret@relay.example?tls=opportunistic", "never sent without TLS"),
    ("smtps://relay.example?tls=none", "omit .tls="),
])  # fmt: skip
def test_an_invalid_url_is_refused_with_an_explanation(url, message):
    with pytest.raises(InvalidSmtpUrl, match=message) as refused:
        parse_smtp_url(url)
    assert "secret" not in str(refused.value)
