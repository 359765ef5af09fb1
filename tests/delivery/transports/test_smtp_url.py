import pytest

from delivery.transports.smtp.login import Login
from delivery.transports.smtp.smtp_url import BadSmtpUrl, RelayUrl, parse_smtp_url
from delivery.transports.smtp.tls import Tls


@pytest.mark.parametrize(
    ("url", "wanted"),
    [
        ("smtp://relay.example", RelayUrl("relay.example", 587, Tls.OPPORTUNISTIC)),
        ("smtp://relay.example:25", RelayUrl("relay.example", 25, Tls.OPPORTUNISTIC)),
        ("smtp://u:p@relay.example", RelayUrl("relay.example", 587, Tls.REQUIRED, Login("u", "p"))),
        ("smtps://u:p@relay.example", RelayUrl("relay.example", 465, Tls.IMPLICIT, Login("u", "p"))),
        ("smtps://relay.example:2465/", RelayUrl("relay.example", 2465, Tls.IMPLICIT)),
        ("smtp://relay.example?tls=none", RelayUrl("relay.example", 587, Tls.NONE)),
        ("smtp://relay.example?tls=required", RelayUrl("relay.example", 587, Tls.REQUIRED)),
        ("smtp://[2001:db8::1]:25?tls=none", RelayUrl("2001:db8::1", 25, Tls.NONE)),
        ("smtp://a%40b:p%3A%2F%23%C3%A4@h.example", RelayUrl("h.example", 587, Tls.REQUIRED, Login("a@b", "p:/#ä"))),
    ],
)
def test_a_url_names_a_relay(url, wanted):
    assert parse_smtp_url(url) == wanted


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("", "begins with smtp://"),
        ("relay.example:587", "begins with smtp://"),
        ("http://relay.example", "begins with smtp://"),
        ("smtp://", "names no host"),
        ("smtp://u:p@", "names no host"),
        ("smtp://relay.example:mail", "not readable"),
        ("smtp://relay.example:99999", "not readable"),
        ("smtp://[::1", "not readable"),
        ("smtp://relay.example/path", "Encode"),
        ("smtp://u:pa/ss@relay.example", "not readable|Encode"),
        ("smtp://u@relay.example", "both a user and a password"),
        ("smtp://:p@relay.example", "both a user and a password"),
        ("smtp://relay.example?tls=maybe", "tls is one of"),
        ("smtp://relay.example?tls=", "tls is one of"),
        ("smtp://relay.example?tsl=none", "not known here"),
        ("smtp://u:secret@relay.example?tls=none", "never sent without TLS"),
        ("smtp://u:secret@relay.example?tls=opportunistic", "never sent without TLS"),
        ("smtps://relay.example?tls=none", "leave .tls= out"),
    ],
)
def test_a_senseless_url_is_refused_with_a_sentence(url, told):
    with pytest.raises(BadSmtpUrl, match=told) as refused:
        parse_smtp_url(url)
    assert "secret" not in str(refused.value)
