"""Settings of the sending domains that stop the start; tests/config starts the service with some of them."""

import pytest

from config import env
from config.celery import app
from config.checks import sentences


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("SPF_MECHANISMS", "v=spf1 include:a.example ~all", "leave v=spf1 out"),
        ("SPF_MECHANISMS", "include:a.example ~all", "~all must be a mechanism that passes"),
        ("SPF_MECHANISMS", "192.0.2.1", "'192.0.2.1' is not an SPF mechanism"),
        ("DMARC_RUA", ["reports"], "DMARC_RUA must be a comma list of addresses"),
        ("DMARC_RUA", ["a@b.example", "mailto:c@d.example;x"], "DMARC_RUA must be a comma list of addresses"),
    ],
)
def test_a_senseless_one_is_told(settings, name, value, sentence):
    setattr(settings, name, value)
    assert any(sentence in told for told in sentences())


def test_good_ones_are_taken(settings):
    settings.SPF_MECHANISMS = "include:_spf.service.example ip4:192.0.2.0/24 ip6:2001:db8::/32 a:mx.service.example"
    settings.DMARC_RUA = ["a@b.example", "mailto:c@d.example"]
    assert not [told for told in sentences() if told.startswith(("SPF_MECHANISMS", "DMARC_RUA"))]


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("text", ["resolver.example:53", "127.0.0.1:99999", "127.0.0.1:x", ":53", "::1", "[::1", "a b"])
def test_what_is_no_name_server_is_told(monkeypatch, text):
    problems: list[str] = []
    monkeypatch.setattr(env, "problems", problems)
    monkeypatch.setenv("DNS_SERVERS", text)
    assert env.servers("DNS_SERVERS") == []
    assert problems == [f"DNS_SERVERS holds {text!r}, which is no address with a port such as 127.0.0.1:53."]


def test_beat_rings_for_a_task_that_there_is():
    app.loader.import_default_modules()
    assert app.conf.beat_schedule["domains"]["task"] in app.tasks
