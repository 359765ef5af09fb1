"""The file of named transports: what it may contain, and a sentence for each mistake."""

from datetime import date
from ipaddress import ip_address

import pytest

from core.delivery.transports.transports_file import (
    FailoverKind,
    InvalidTransportsFile,
    read_transports,
    single_transport,
)
from tests.rows import each

WORKSPACE = "ws_0Uf7kWQ2mX1cVbNq8RtYzA"
COMPLETE = f"""
transports:
  own: {{kind: direct, sourceAddresses: ["192.0.2.10", "2001:db8::10"], ehloName: mta1.example.com, perDay: 50000}}
  relay: {{kind: smtp, urlFile: relay-url.secret, spf: "include:relay.example"}}
  backup:
    kind: anymail
    backend: anymail.backends.postmark.EmailBackend
    settingsFile: postmark.secret
    spf: "include:spf.mtasv.net include:relay.example"
routes:
  default: {{use: [own, relay, backup], failoverOn: [unreachable, login, rate_limited]}}
  bulk: {{use: [own]}}
workspaces: {{default: [default, bulk], {WORKSPACE}: bulk}}
"""


@pytest.fixture
def read(tmp_path):
    (tmp_path / "relay-url.secret").write_text("smtps://user:hidden%20password@relay.example\n")
    (tmp_path / "postmark.secret").write_text("server_token: hidden-token\nWEBHOOK_SECRET: user:hidden-password\n")
    (tmp_path / "empty.secret").write_text("\n")
    (tmp_path / "bad.secret").write_text("smtp://user:hidden@relay.example:99999\n")

    def read(text):
        path = tmp_path / "transports.yaml"
        path.write_text(text)
        return read_transports(path)

    return read


@each(("text", "leaves"), [("", False), (", leaveWhenListed: false", False), (", leaveWhenListed: true", True)])
def test_listed_addresses_are_left_if_the_file_says_so(read, text, leaves):
    own = f'transports: {{own: {{kind: direct, sourceAddresses: ["192.0.2.1"]{text}}}}}\n'
    assert read(own + "routes: {default: {use: [own]}}").transports["own"].leave_when_listed is leaves


@each("seconds", [1, 86_400])
def test_a_route_may_limit_the_wait_for_a_pace(read, seconds):
    route = f"{{use: [own, relay], failoverOn: [paced], pacedAfterSeconds: {seconds}}}"
    file = "transports: {own: {kind: direct}, relay: {kind: smtp, url: smtp://a.example}}\n"
    default = read(file + f"routes: {{default: {route}}}").routes["default"]
    assert (default.failover_on, default.paced_after_seconds) == ({FailoverKind.PACED}, seconds)


NEW = """
transports:
  own:
    kind: direct
    sourceAddresses: ["192.0.2.10", {address: "192.0.2.11", since: 2026-12-01}, {address: "2001:db8::1"}]
    overflow: wait
routes: {default: {use: [own]}}
"""


@each("text", [NEW, NEW.replace("2026-12-01", '"2026-12-01"')])
def test_new_addresses_have_their_first_day(read, text):
    own = read(text).transports["own"]
    assert own.source_addresses == tuple(map(ip_address, ("192.0.2.10", "192.0.2.11", "2001:db8::1")))
    assert own.since == {ip_address("192.0.2.11"): date(2026, 12, 1)}
    assert own.overflow == "wait"
    assert own.spf == "ip4:192.0.2.10 ip4:192.0.2.11 ip6:2001:db8::1"


def test_plain_addresses_are_not_new(read):
    own = read(COMPLETE).transports["own"]
    assert (own.since, own.overflow) == ({}, "next")


def test_a_complete_file_is_read(read):
    transports = read(COMPLETE)
    own, relay, backup = transports.transports.values()
    assert (own.kind, own.per_day, own.ehlo_name) == ("direct", 50_000, "mta1.example.com")
    assert own.source_addresses == (ip_address("192.0.2.10"), ip_address("2001:db8::10"))
    assert relay.relay.host == "relay.example"
    assert relay.relay.login.password == "hidden password"
    assert backup.backend_options == {"server_token": "hidden-token"}
    assert backup.options["webhook_secret"] == "user:hidden-password"
    assert transports.routes["default"].use == ("own", "relay", "backup")
    assert transports.routes["default"].failover_on == {"unreachable", "login", "rate_limited"}
    assert transports.routes["bulk"].failover_on == {*FailoverKind} - {"blocklisted", "paced"}
    assert transports.spf == ("ip4:192.0.2.10", "ip6:2001:db8::10", "include:relay.example", "include:spf.mtasv.net")


def test_secrets_are_in_no_representation(read):
    assert "hidden" not in repr(read(COMPLETE))


def test_a_workspace_uses_its_route_or_the_one_of_its_stream(read):
    transports = read(COMPLETE)
    assert transports.routes_of(WORKSPACE) == ("bulk",)
    assert transports.routes_of("ws_other") == ("default", "bulk")
    assert transports.route_of("ws_other") == "default"
    assert transports.route_of("ws_other", chosen="bulk") == "bulk"
    assert transports.all_are("direct", workspace_id=WORKSPACE)
    assert not transports.all_are("direct", workspace_id="ws_other")


def test_webhooks_of_a_transport_come_from_its_provider(read):
    transports = read(COMPLETE).transports
    assert transports["backup"].has_provider("postmark")
    assert not transports["backup"].has_provider("mailgun")
    assert not transports["relay"].has_provider("postmark")


def test_without_a_file_there_is_one_transport_in_one_route():
    transports = single_transport("smtp")
    assert (list(transports.transports), list(transports.routes)) == (["default"], ["default"])
    assert transports.routes_of("ws_any") == ("default",)
    assert not transports.is_named


OWN = "transports: {own: {kind: smtp, url: smtp://relay.example}}\n"
ROUTES = "routes: {default: {use: [own]}}\n"
MANY = ", ".join(f"t{number}: {{kind: direct}}" for number in range(11))
MISTAKES = {
    "no mapping": ("[]", "must have names with values"),
    "no YAML": ("transports: [", "neither YAML nor JSON (line 1)"),
    "another section": (f"{OWN}{ROUTES}routers: {{}}", "'routers' is unknown"),
    "no transports": (ROUTES, "transports must have names"),
    "no routes": (OWN, "routes must have names"),
    "eleven transports": (f"transports: {{{MANY}}}\n{ROUTES}", "1 to 10 of them, not 11"),
    "a capital in a name": ("transports: {Own: {kind: direct}}\n" + ROUTES, "'Own' must have 1 to 30 characters"),
    "a long name": (f"transports: {{{'x' * 31}: {{kind: direct}}}}\n{ROUTES}", "1 to 30 characters"),
    "an unknown kind": ("transports: {own: {kind: pigeon}}\n" + ROUTES, "kind must be one of direct, smtp, anymail"),
    "an option of another kind": (
        "transports: {own: {kind: smtp, url: smtp://a.example, sourceAddresses: [192.0.2.1]}}\n" + ROUTES,
        "'sourceAddresses' is unknown",
    ),
    "no URL": ("transports: {own: {kind: smtp}}\n" + ROUTES, "set urlFile"),
    "two URLs": ("transports: {own: {kind: smtp, url: smtp://a.example, urlFile: x}}\n" + ROUTES, "set urlFile"),
    "a password in the file": (
        "transports: {own: {kind: smtp, url: 'smtp://user:hidden@a.example'}}\n" + ROUTES,
        "belongs into a file",
    ),
    "an invalid URL": ("transports: {own: {kind: smtp, url: http://a.example}}\n" + ROUTES, "must begin with smtp://"),
    "an invalid secret": ("transports: {own: {kind: smtp, urlFile: bad.secret}}\n" + ROUTES, "port is invalid"),
    "a missing secret": ("transports: {own: {kind: smtp, urlFile: no.secret}}\n" + ROUTES, "cannot be read"),
    "an empty secret": ("transports: {own: {kind: smtp, urlFile: empty.secret}}\n" + ROUTES, "is empty"),
    "no backend": ("transports: {own: {kind: anymail}}\n" + ROUTES, "set backend"),
    "no address": ("transports: {own: {kind: direct, sourceAddresses: [localhost]}}\n" + ROUTES, "must be a list such"),
    "a number as address": (
        "transports: {own: {kind: direct, sourceAddresses: [1]}}\n" + ROUTES,
        "must be a list such",
    ),
    "an address without a value": (
        "transports: {own: {kind: direct, sourceAddresses: [{since: 2026-12-01}]}}\n" + ROUTES,
        "must be a list such",
    ),
    "an unknown key of an address": (
        "transports: {own: {kind: direct, sourceAddresses: [{address: 192.0.2.1, from: 2026-12-01}]}}\n" + ROUTES,
        "sourceAddresses: 'from' is unknown. Use address, since",
    ),
    "a month as first day": (
        "transports: {own: {kind: direct, sourceAddresses: [{address: 192.0.2.1, since: 2026-12}]}}\n" + ROUTES,
        "own, 192.0.2.1: since must be a day such as 2026-12-01",
    ),
    "a time as first day": (
        "transports: {own: {kind: direct, sourceAddresses: [{address: 192.0.2.1, since: 2026-12-01 10:00:00}]}}\n"
        + ROUTES,
        "since must be a day",
    ),
    "no first day": (
        "transports: {own: {kind: direct, sourceAddresses: [{address: 192.0.2.1, since: null}]}}\n" + ROUTES,
        "since must be a day",
    ),
    "two first days": (
        "transports: {own: {kind: direct, sourceAddresses: [{address: 192.0.2.1, since: 2026-12-01}]},"
        " b: {kind: direct, sourceAddresses: [192.0.2.1]}}\n" + ROUTES,
        "transports, b: 192.0.2.1 has another since elsewhere",
    ),
    "an unknown overflow": (
        "transports: {own: {kind: direct, sourceAddresses: [192.0.2.1], overflow: [next]}}\n" + ROUTES,
        "overflow must be one of next, wait",
    ),
    "leaving without addresses": (
        "transports: {own: {kind: direct, leaveWhenListed: true}}\n" + ROUTES,
        "leaveWhenListed needs the addresses",
    ),
    "leaving as text": (
        "transports: {own: {kind: direct, sourceAddresses: [192.0.2.1], leaveWhenListed: often}}\n" + ROUTES,
        "leaveWhenListed must be true or false",
    ),
    "leaving by a relay": (
        "transports: {own: {kind: smtp, url: smtp://a.example, leaveWhenListed: true}}\n" + ROUTES,
        "'leaveWhenListed' is unknown",
    ),
    "a limit of zero": ("transports: {own: {kind: direct, perDay: 0}}\n" + ROUTES, "perDay must be a whole number"),
    "a limit as text": ("transports: {own: {kind: direct, perDay: many}}\n" + ROUTES, "perDay must be a whole number"),
    "an EHLO name of one word": ("transports: {own: {kind: direct, ehloName: mta}}\n" + ROUTES, "must be a host name"),
    "an unknown transport": (OWN + "routes: {default: {use: [owm]}}", "there is no transport 'owm'"),
    "a route in a route": (OWN + "routes: {default: {use: [bulk]}, bulk: {use: [default]}}", "'bulk' is a route"),
    "a transport twice": (OWN + "routes: {default: {use: [own, own]}}", "'own' is listed twice"),
    "an empty route": (OWN + "routes: {default: {use: []}}", "must be a list of names"),
    "an unknown failover": (OWN + "routes: {default: {use: [own], failoverOn: [spam]}}", "'spam' is unknown"),
    "a wait without its length": (OWN + "routes: {default: {use: [own], failoverOn: [paced]}}", "from 1 to 86,400"),
    "a wait of zero": (
        OWN + "routes: {default: {use: [own], failoverOn: [paced], pacedAfterSeconds: 0}}",
        "from 1 to 86,400",
    ),
    "a wait of more than a day": (
        OWN + "routes: {default: {use: [own], failoverOn: [paced], pacedAfterSeconds: 86401}}",
        "from 1 to 86,400",
    ),
    "a wait as a truth": (
        OWN + "routes: {default: {use: [own], failoverOn: [paced], pacedAfterSeconds: true}}",
        "from 1 to 86,400",
    ),
    "a length without the wait": (
        OWN + "routes: {default: {use: [own], pacedAfterSeconds: 600}}",
        "pacedAfterSeconds needs paced in failoverOn",
    ),
    "an unknown route": (OWN + ROUTES + "workspaces: {default: bulk}", "there is no route 'bulk'"),
    "no default route": (OWN + ROUTES + f"workspaces: {{{WORKSPACE}: default}}", "set default to the route"),
    "no workspace": (OWN + ROUTES + "workspaces: {default: default, shop: default}", "must be default, or an id"),
}


@each(("text", "sentence"), MISTAKES.values())
def test_a_mistake_is_explained_without_secrets(read, text, sentence):
    with pytest.raises(InvalidTransportsFile) as error:
        read(text)
    assert sentence in str(error.value)
    assert "hidden" not in str(error.value)


def test_a_missing_file_is_explained(tmp_path):
    with pytest.raises(InvalidTransportsFile, match="cannot be read: No such file"):
        read_transports(tmp_path / "none.yaml")
