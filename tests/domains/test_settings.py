"""Settings of sending domains that prevent the start; tests/config starts the service with some of them."""

from config import env
from config.checks import setting_errors
from tests.rows import each


@each(
    ("name", "value", "message"),
    [
        ("SPF_MECHANISMS", "v=spf1 include:a.example ~all", "leave out v=spf1"),
        ("SPF_MECHANISMS", "include:a.example ~all", "~all is not allowed"),
        ("SPF_MECHANISMS", "192.0.2.1", "'192.0.2.1' is not an SPF mechanism"),
        ("DMARC_RUA", ["reports"], "DMARC_RUA must be a comma-separated list of addresses"),
        ("DMARC_RUA", ["a@b.example", "mailto:c@d.example;x"], "DMARC_RUA must be a comma-separated list of addresses"),
    ],
)
def test_an_invalid_setting_is_an_error(settings, name, value, message):
    setattr(settings, name, value)
    assert any(message in error for error in setting_errors())


def test_valid_settings_have_no_error(settings):
    settings.SPF_MECHANISMS = "include:_spf.service.example ip4:192.0.2.0/24 ip6:2001:db8::/32 a:mx.service.example"
    settings.DMARC_RUA = ["a@b.example", "mailto:c@d.example"]
    assert not [message for message in setting_errors() if message.startswith(("SPF_MECHANISMS", "DMARC_RUA"))]


@each(
    ("text", "servers"),
    [
        ("", []),
        ("127.0.0.1:5353", [("127.0.0.1", 5353)]),
        ("192.0.2.1, [::1]:54 ,[2001:db8::1]", [("192.0.2.1", 53), ("::1", 54), ("2001:db8::1", 53)]),
    ],
)
def test_name_servers_are_read(monkeypatch, text, servers):
    monkeypatch.setenv("DNS_SERVERS", text)
    assert env.servers("DNS_SERVERS") == servers


@each("text", ["resolver.example:53", "127.0.0.1:99999", "127.0.0.1:x", ":53", "::1", "[::1", "a b"])
def test_an_invalid_name_server_is_an_error(monkeypatch, text):
    problems: list[str] = []
    monkeypatch.setattr(env, "problems", problems)
    monkeypatch.setenv("DNS_SERVERS", text)
    assert env.servers("DNS_SERVERS") == []
    assert problems == [f"DNS_SERVERS: {text!r} is not an address with a port such as 127.0.0.1:53."]
