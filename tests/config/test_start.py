"""Postrider refuses to start with a missing or unsafe setting and explains how to fix it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from config import checks, env
from config.env import SECRETS
from config.worker import worker_programs
from streams.models import Stream
from tests.rows import each

REPOSITORY = Path(__file__).resolve().parents[2]
DATABASE = "postgres://user:secret-password@db.example:5432/postrider"
VALID = {
    "MODE": "production",
    "DATABASE_URL": DATABASE,
    "REDIS_URL": "redis://:secret-password@redis.example:6379/0",
    "SECRET_KEY": "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "APP_KEYS": "k1:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
    "PUBLIC_URL": "https://mail.example.com",
    "ALLOWED_HOSTS": "mail.example.com",
    "DELIVERY_TRANSPORT": "inbox",
    "SPF_MECHANISMS": "include:_spf.example.com",
    "SYSTEM_FROM": "Example Mail <no-reply@example.com>",
}


def start(*command: str, **changes: str | None) -> "subprocess.CompletedProcess[str]":
    values = {"PATH": os.environ["PATH"], **VALID, **changes}
    environment = {name: value for name, value in values.items() if value is not None}
    arguments = [sys.executable, *(command or ("manage.py", "check"))]
    return subprocess.run(
        arguments, cwd=REPOSITORY, env=environment, capture_output=True, text=True, check=False, timeout=60
    )


# The settings as a new process reads them, once for each environment.
READ = """
import json, os, sys
from django.conf import settings
from django.utils.functional import empty
from config import checks, env
for changes, names in json.loads(sys.argv[1]):
    before = dict(os.environ)
    os.environ.update({name: value or "" for name, value in changes.items()})
    env.problems.clear()
    sys.modules.pop("config.settings", None)
    settings._wrapped = empty
    values = [str(getattr(settings, name)) for name in ("DEBUG", *names)][1:]
    print(json.dumps([list(checks.setting_errors()), values]))
    os.environ.clear()
    os.environ.update(before)
"""


def read_settings(*rows: tuple[dict[str, str | None], tuple[str, ...]]) -> list[tuple[list[str], list[str]]]:
    """Return the errors and the values of settings for each row: changes of VALID, and names of settings."""
    run = start("-c", READ, json.dumps(rows), DJANGO_SETTINGS_MODULE="config.settings")
    assert run.returncode == 0, run.stderr
    return [(errors, values) for errors, values in map(json.loads, run.stdout.splitlines())]


def test_valid_settings_start():
    assert start().returncode == 0


@each(("value", "text"), [
    ("captured", "RECIPIENTS=captured: no recipient gets email; the built-in inbox captures all emails."),
    ("redirect:qa@example.com", "RECIPIENTS=redirect:qa@example.com: no recipient gets email; all emails go to"),
])  # fmt: skip
def test_a_start_says_that_no_recipient_gets_email(value, text):
    run = start(RECIPIENTS=value)
    assert (run.returncode, text in run.stderr) == (0, True)


def test_values_are_read():
    rows = [
        ({"SUBMISSION_TLS_PORTS": "none"}, ("SUBMISSION_TLS_PORTS", "SUBMISSION_PORTS"), ["[]", "[587, 2525]"]),
        ({"RECEIVING_MAX_BYTES": str(56 * 2**20)}, ("RECEIVING_MAX_BYTES",), [str(56 * 2**20)]),
        ({"RECEIVING_STORAGE": str(2**50)}, ("RECEIVING_STORAGE",), [str(2**50)]),
        ({"ANYMAIL_POSTMARK_SERVER_TOKEN": "a"}, ("ANYMAIL",), ["{'POSTMARK_SERVER_TOKEN': 'a'}"]),
        ({}, ("RECIPIENTS",), ["all"]),
        ({"RECIPIENTS": "captured"}, ("RECIPIENTS",), ["captured"]),
        ({"RECIPIENTS": "redirect:QA@Example.com"}, ("RECIPIENTS",), ["redirect:QA@example.com"]),
        # Nothing leaves with a value that is not understood, or with a file that cannot be read.
        ({"RECIPIENTS": "/none/rules.json"}, ("RECIPIENTS",), ["captured"]),
        ({"RECIPIENTS": "Captured"}, ("RECIPIENTS",), ["captured"]),
        # Only those who may sign up without an invitation are suspended by default.
        ({}, PERCENTAGES, ["0.1", "None", "5", "None"]),
        ({"SIGNUP": "open"}, PERCENTAGES, ["0.1", "0.3", "5", "10"]),
        ({"SIGNUP": "open", "MODE": "embedded"}, PERCENTAGES, ["None"] * 4),
        (
            {"SIGNUP": "open", "BOUNCE_PAUSE_PERCENT": "off", "COMPLAINT_PAUSE_PERCENT": "0.125"},
            PERCENTAGES,
            ["0.1", "0.125", "5", "None"],
        ),
    ]
    found = read_settings(*(row[:2] for row in rows))
    assert [(row[0], values) for row, (_, values) in zip(rows, found, strict=True)] == [
        (changes, expected) for changes, _, expected in rows
    ]


class TestNamesThatAreNoSettings:
    NAMES: Mapping[str, str | None] = {
        "PUBLIC_URLS": "https://a.example",
        "SYSTEM_FORM": "a",
        "SMTP_PASSWORD": "b",
        "PORTS": "1",
    }

    def test_a_check_names_those_that_are_nearly_settings(self):
        run = start(**self.NAMES)
        assert run.returncode == 0, run.stderr
        assert "PUBLIC_URLS is not a setting, and has no effect. Did you mean PUBLIC_URL?" in run.stderr
        assert "SYSTEM_FORM is not a setting, and has no effect. Did you mean SYSTEM_FROM?" in run.stderr
        assert run.stderr.count("is not a setting") == 2

    def test_web_logs_them(self):
        run = start("-c", "import config.wsgi", MAX_EMAIL_BYTE="1", WORKER_CONCURENCY="2")
        assert "WORKER_CONCURENCY is not a setting" in run.stderr + run.stdout

    def test_the_file_of_a_secret_is_a_setting(self, tmp_path):
        path = secret_file(tmp_path, "SECRET_KEY")
        path.write_text(VALID["SECRET_KEY"])
        run = start(SECRET_KEY=None, SECRET_KEY_FILE=str(path), SECRET_KEYS_FILE="x")
        assert "SECRET_KEYS_FILE is not a setting, and has no effect. Did you mean SECRET_KEY?" in run.stderr
        assert run.stderr.count("is not a setting") == 1


def test_a_check_reads_certificates(tmp_path):
    path = tmp_path / "certificate.pem"
    path.write_text("no certificate")
    run = start(
        INBOUND_TLS_CERT=str(path), INBOUND_TLS_KEY=str(path), SUBMISSION_TLS_CERT="/no", SUBMISSION_TLS_KEY="/no"
    )
    assert run.returncode == 0
    assert "INBOUND_TLS_CERT and INBOUND_TLS_KEY cannot be used on this machine: [SSL]" in run.stderr
    assert (
        "SUBMISSION_TLS_CERT and SUBMISSION_TLS_KEY cannot be used on this machine: [Errno 2] No such file"
        in run.stderr
    )


PERCENTAGES = ("COMPLAINT_WARN_PERCENT", "COMPLAINT_PAUSE_PERCENT", "BOUNCE_WARN_PERCENT", "BOUNCE_PAUSE_PERCENT")
INVALID = [
    ({"MODE": "prod"}, "MODE must be one of production, embedded"),
    ({"DATABASE_URL": None}, "DATABASE_URL is missing. Set it to a URL such as postgres://"),
    ({"DATABASE_URL": "mysql://x/y"}, "DATABASE_URL must begin with postgres://"),
    ({"DATABASE_URL": f"{DATABASE}?sslmode=bogus"}, "DATABASE_URL: sslmode must be one of disable, allow, prefer"),
    ({"DATABASE_URL": f"{DATABASE}?ssl_mode=require"}, "the parameter ssl_mode is not supported. Use only sslmode,"),
    ({"DATABASE_URL": f"{DATABASE}?password=secret-password"}, "the parameter password is not supported"),
    ({"DATABASE_URL": f"{DATABASE}?sslmode=verify-full"}, "sslmode=verify-full requires sslrootcert, the path of"),
    ({"DATABASE_URL": f"{DATABASE}?sslrootcert=system"}, "sslrootcert=system cannot be read. Use the path of a PEM"),
    ({"DATABASE_URL": "postgres://u:secret-password@one,two/db"}, "DATABASE_URL names several hosts, of which only"),
    ({"DATABASE_URL": "postgres://u:secret-password@one:x,two/db"}, "DATABASE_URL: the hosts must be a host with a"),
    ({"DATABASE_URL": "postgres://u:secret-password@one:x/db"}, "DATABASE_URL: the hosts must be a host with a"),
    ({"REDIS_URL": None}, "REDIS_URL is missing. Set it"),
    ({"REDIS_URL": "amqp://x"}, "REDIS_URL must begin with redis://"),
    ({"REDIS_URL": "redis+sentinel://:secret-password@one,two"}, "REDIS_URL: must be like redis+sentinel://:password@"),
    ({"REDIS_URL": "redis+sentinel://one/mail?ssl=true"}, "REDIS_URL: the parameter ssl is not supported. Use only"),
    ({"SECRET_KEY": None}, "SECRET_KEY is missing. Set it"),
    ({"SECRET_KEY": "changeme"}, "SECRET_KEY is too easy to guess"),
    ({"APP_KEYS": None}, "APP_KEYS is missing. Set it"),
    ({"APP_KEYS": "k1:short"}, "APP_KEYS: entry 1 must be id:base64 of 32 random bytes"),
    ({"APP_KEYS": "k1:short,k2:shorter"}, "APP_KEYS: entry 2 must be id:base64 of 32 random bytes"),
    ({"APP_KEYS": "k1:" + "A" * 43 + "="}, "is not random"),
    ({"PUBLIC_URL": None}, "PUBLIC_URL is missing. Set it"),
    ({"PUBLIC_URL": "http://mail.example.com"}, "PUBLIC_URL must begin with https:// in production"),
    ({"PUBLIC_URL": "https://mail.example.com/x"}, "PUBLIC_URL must be https://host without a path"),
    ({"ALLOWED_HOSTS": None}, "ALLOWED_HOSTS is missing. Set it"),
    ({"ALLOWED_HOSTS": "*"}, "ALLOWED_HOSTS must not contain *"),
    ({"ALLOWED_HOSTS": "mail.example.com,*"}, "ALLOWED_HOSTS must not contain *"),
    ({"DELIVERY_TRANSPORT": None}, "DELIVERY_TRANSPORT must be one of inbox, smtp, direct, anymail"),
    ({"DELIVERY_TRANSPORT": "smtp"}, "SMTP_URL: The URL must begin with smtp:// or smtps://"),
    ({"DELIVERY_TRANSPORT": "smtp", "SMTP_URL": "smtp://u:secret-password@h?tls=none"}, "never sent without TLS"),
    ({"DELIVERY_TRANSPORT": "anymail", "ANYMAIL_BACKEND": "nothing.Backend"}, "nothing.Backend cannot be used"),
    ({"RECEIVING_STORAGE": str(2**50 + 1)}, "RECEIVING_STORAGE must be a whole number from 0 to 1125899906842624"),
    ({"DELIVERY_TRANSPORT": "pigeon"}, "DELIVERY_TRANSPORT must be one of inbox, smtp, direct, anymail"),
    ({"DELIVERY_MAX_AGE": "a day"}, "DELIVERY_MAX_AGE must be a whole number"),
    ({"DELIVERY_RETRY_SECONDS": "60,x"}, "DELIVERY_RETRY_SECONDS must be a comma-separated list"),
    ({"DELIVERY_CONNECTIONS": "0"}, "DELIVERY_CONNECTIONS must be a whole number from 1"),
    ({"WEBHOOK_RETRY_SECONDS": "5,soon"}, "WEBHOOK_RETRY_SECONDS must be a comma-separated list"),
    ({"WEBHOOK_PORTS": "443,70000"}, "WEBHOOK_PORTS must be a comma-separated list of ports"),
    ({"WEBHOOK_ALLOW_PRIVATE_NETWORKS": "yes"}, "WEBHOOK_ALLOW_PRIVATE_NETWORKS must be true or false"),
    ({"WEBHOOK_CONNECTIONS": "1"}, "WEBHOOK_CONNECTIONS must be a whole number from 2"),
    ({"DNS_SERVERS": "dns.example"}, "DNS_SERVERS: 'dns.example' is not an address"),
    ({"TRUSTED_PROXIES": "proxy"}, "TRUSTED_PROXIES: 'proxy' is neither an address"),
    ({"SPF_MECHANISMS": None}, "SPF_MECHANISMS is missing. Set it"),
    ({"SYSTEM_FROM": None}, "SYSTEM_FROM is missing. Set it"),
    ({"SYSTEM_FROM": "nobody"}, "SYSTEM_FROM must be an address such as"),
    ({"SYSTEM_NAME": "x" * 61}, "SYSTEM_NAME must be one line of at most 60 characters"),
    ({"SYSTEM_LOGO_URL": "http://example.com/logo.png"}, "SYSTEM_LOGO_URL must be a URL such as https://"),
    ({"SYSTEM_LOGO_URL": 'https://example.com/"><b>'}, "SYSTEM_LOGO_URL must be a URL such as https://"),
    ({"SYSTEM_COLOR": "red"}, "SYSTEM_COLOR must be a color such as #4f46e5, not 'red'"),
    ({"TLSRPT_DOMAIN": "https://example.com"}, "TLSRPT_DOMAIN must be a sending domain such as example.com"),
    ({"CANARY_MINUTES": "15"}, "CANARY_ADDRESS must be the address that CANARY_MINUTES sends to"),
    ({"CANARY_MINUTES": "1441"}, "CANARY_MINUTES must be a whole number from 0 to 1440"),
    (
        {"CANARY_MINUTES": "15", "CANARY_ADDRESS": "Canary <canary@example.com>"},
        "CANARY_ADDRESS must be the address that CANARY_MINUTES sends to",
    ),
    (
        {"CANARY_MINUTES": "15", "CANARY_ADDRESS": "c@example.com", "CANARY_PING_URL": "ftp://secret.example/"},
        "CANARY_PING_URL must be a URL such as https://",
    ),
    ({"STAFF_SECOND_FACTOR": "maybe"}, "STAFF_SECOND_FACTOR must be one of required, optional"),
    ({"DNS_SERVERS": "resolver.example:53"}, "DNS_SERVERS: 'resolver.example:53' is not an address"),
    ({"SENDING_DOMAIN_POLICY": "any"}, "SENDING_DOMAIN_POLICY must be one of registered, verified"),
    ({"METRICS_TOKEN": "hunter2"}, "METRICS_TOKEN is too easy to guess"),
    ({"READY_MAX_DELAY": "9"}, "READY_MAX_DELAY must be a whole number from 10"),
    ({"SIGNUP": "yes"}, "SIGNUP must be one of open, closed"),
    ({"COMPLAINT_PAUSE_PERCENT": "0"}, "COMPLAINT_PAUSE_PERCENT must be off, or a percentage above 0"),
    ({"BOUNCE_WARN_PERCENT": "101"}, "BOUNCE_WARN_PERCENT must be off, or a percentage above 0"),
    ({"RECIPIENTS": "nobody"}, "RECIPIENTS must be all, captured, redirect: with an address, or the path of a file, "),
    ({"RECIPIENTS": "/none/rules.json"}, "RECIPIENTS: /none/rules.json cannot be read: No such file or directory."),
    ({"RECIPIENTS": "redirect:qa"}, "RECIPIENTS must name an address, such as redirect:qa@example.com"),
    ({"SUPPRESS_ON": "never"}, "SUPPRESS_ON must be one of recipient_fault, every_bounce"),
    ({"SUBMISSION_PORTS": "none"}, "SUBMISSION_PORTS is none: set SUBMISSION_TLS_PORTS and SUBMISSION_TLS_CERT"),
    ({"INBOUND_TLS_CERT": "/etc/cert.pem"}, "INBOUND_TLS_CERT and INBOUND_TLS_KEY require each other"),
    ({"RECEIVING_MAX_BYTES": str(58720257)}, "RECEIVING_MEMORY_BYTES must be at least 268435461"),
    ({"RECEIVING_MEMORY_BYTES": "4793489"}, "RECEIVING_MEMORY_BYTES must be at least 119837258"),
    ({"RECEIVING_MAX_BYTES": "65536", "RECEIVING_MEMORY_BYTES": "4793489"}, "MEMORY_BYTES must be at least 4793491"),
    ({"ANYMAIL_WEBHOOK_SECRET": "secret"}, "ANYMAIL_WEBHOOK_SECRET must be user:password"),
]


def test_invalid_settings_are_errors():
    found = [errors for errors, _ in read_settings(*((changes, ()) for changes, _ in INVALID))]
    wrong = [
        (changes, errors)
        for (changes, message), errors in zip(INVALID, found, strict=True)
        if message not in "\n".join(errors)
    ]
    assert wrong == []
    assert "secret-password" not in str(found)


class TestRecipientsFile:
    def start(self, tmp_path, text, **changes):
        path = tmp_path / "recipients.json"
        path.write_text(text)
        return start(RECIPIENTS=str(path), **changes)

    @each(("text", "effect"), [
        ('{"allow": ["@example.com"]}', "only the recipients that it allows get email; emails to others are refused."),
        ('{"allow": [], "otherwise": "capture"}', "emails to others are captured by the built-in inbox."),
        ('{"allow": [], "otherwise": "redirect", "redirectTo": "q@a.example"}', "emails to others go to q@a.example."),
        ('{"caps": [{"count": 5, "seconds": 60}]}', "its caps limit how many emails a recipient gets."),
    ])  # fmt: skip
    def test_a_start_says_who_gets_email(self, tmp_path, text, effect):
        run = self.start(tmp_path, text)
        assert run.returncode == 0, run.stderr
        assert "RECIPIENTS names a file with rules: " in run.stderr
        assert effect in run.stderr

    def test_a_mistake_prevents_the_start_and_is_named(self, tmp_path):
        run = self.start(tmp_path, '{"alow": []}')
        assert run.returncode == 1
        assert "recipients.json: 'alow' is unknown. The fields are allow, otherwise, redirectTo, caps." in run.stderr


class TestReceiversFile:
    def start(self, tmp_path, text, *command):
        path = tmp_path / "receivers.yaml"
        path.write_text(text)
        return start(*command, RECEIVERS_FILE=str(path))

    def test_a_mistake_prevents_the_start_and_is_named(self, tmp_path):
        for command in (("manage.py", "check"), ("manage.py", "receivers", "check")):
            run = self.start(tmp_path, "google: {conections: 5}", *command)
            assert run.returncode == 1
            assert "RECEIVERS_FILE: google: 'conections' is unknown." in run.stderr

    def test_the_table_in_force_is_shown(self, tmp_path):
        run = self.start(tmp_path, "google: {connections: 7, tls: required}", "manage.py", "receivers", "check")
        assert run.returncode == 0, run.stderr
        heading, default, google, *_ = (line.split("  ") for line in run.stdout.splitlines())
        cells = [[cell.strip() for cell in line if cell.strip()] for line in (heading, default, google)]
        assert cells == [
            ["key", "name", "connections", "messages each", "a minute", "tls", "mail hosts"],
            ["default", "default", "10", "100", "no limit", "as others", "all others"],
            ["google", "Google", "7", "50", "no limit", "required", "google.com, googlemail.com, psmtp.com"],
        ]


@each(("value", "zones"), [
    (None, ["zen.spamhaus.org", "bl.spamcop.net", "b.barracudacentral.org"]),
    ("", []),
    (" ", []),
    ("BL.example.net., dnsbl.example.org bl.example.net", ["bl.example.net", "dnsbl.example.org"]),
])  # fmt: skip
def test_block_lists_are_names_and_an_empty_text_is_none(monkeypatch, value, zones):
    monkeypatch.delenv("BLOCKLISTS", raising=False)
    if value is not None:
        monkeypatch.setenv("BLOCKLISTS", value)
    default = ["zen.spamhaus.org", "bl.spamcop.net", "b.barracudacentral.org"]
    assert env.block_lists("BLOCKLISTS", default) == zones


@each("value", ["localhost", "https://zen.spamhaus.org", " ".join(f"bl{number}.example" for number in range(11))])
def test_other_block_lists_are_refused_without_their_keys(monkeypatch, value):
    monkeypatch.setattr(env, "problems", [])
    monkeypatch.setenv("BLOCKLISTS", value)
    assert env.block_lists("BLOCKLISTS", ["bl.example.net"]) == ["bl.example.net"]
    (problem,) = env.problems
    assert "at most 10 DNS names such as bl.example.net" in problem
    assert value not in problem


class TestTransportsFile:
    FILE = """
transports:
  own: {kind: direct, sourceAddresses: ["127.0.0.1"], spf: "include:own.example"}
  relay: {kind: smtp, url: "smtp://relay.example"}
routes: {default: {use: [own, relay]}}
"""

    def start(self, tmp_path, text, *command, **changes):
        path = tmp_path / "transports.yaml"
        path.write_text(text)
        return start(*command, **{"TRANSPORTS_FILE": str(path), "DELIVERY_TRANSPORT": None, **changes})

    def test_it_replaces_the_other_settings(self, tmp_path):
        run = self.start(tmp_path, self.FILE, SPF_MECHANISMS=None)
        assert run.returncode == 0, run.stderr

    def test_the_spf_mechanisms_are_those_of_all_transports(self, tmp_path):
        read = "from config.settings import *; print(SPF_MECHANISMS)"
        run = self.start(tmp_path, self.FILE, "-c", read, SPF_MECHANISMS="include:_spf.example.com")
        assert run.stdout == "include:_spf.example.com include:own.example\n"

    @each(
        ("changed", "sentence"),
        [
            (("[own, relay]", "[owm]"), "TRANSPORTS_FILE: routes, default: there is no transport 'owm'"),
            (("include:own.example", "all"), "TRANSPORTS_FILE: transports, own: spf must be a list"),
            (("smtp://relay.example", "smtp://127.0.0.1:587?tls=none"), "relay: the relay is this service itself"),
            (('kind: smtp, url: "smtp://relay.example"', "kind: anymail, backend: no.Backend"), "no.Backend cannot"),
        ],
    )
    def test_a_mistake_is_an_error(self, tmp_path, settings, monkeypatch, changed, sentence):
        assert sentence in self.errors(tmp_path, settings, monkeypatch, self.FILE.replace(*changed))

    def test_leaving_listed_addresses_needs_block_lists(self, tmp_path, settings, monkeypatch):
        text = self.FILE.replace('["127.0.0.1"]', '["127.0.0.1"], leaveWhenListed: true')
        assert "leaveWhenListed" not in self.errors(tmp_path, settings, monkeypatch, text)
        settings.BLOCKLISTS = []
        assert "own: leaveWhenListed needs block lists" in self.errors(tmp_path, settings, monkeypatch, text)

    def test_both_settings_are_refused(self, tmp_path, settings, monkeypatch):
        monkeypatch.setenv("DELIVERY_TRANSPORT", "direct")
        errors = self.errors(tmp_path, settings, monkeypatch, self.FILE)
        assert "TRANSPORTS_FILE replaces DELIVERY_TRANSPORT" in errors

    def errors(self, tmp_path, settings, monkeypatch, text):
        path = tmp_path / "transports.yaml"
        path.write_text(text)
        monkeypatch.setattr(env, "problems", [])
        settings.SUBMISSION_PORTS = [587]
        settings.TRANSPORTS = env.transports(str(path), kind="inbox")
        return "\n".join(checks.setting_errors())

    def test_a_worker_needs_one_of_the_source_addresses(self, tmp_path):
        ask = "import django; django.setup(); from config import checks; checks.refuse_unusable_sources()"
        settings = {"DJANGO_SETTINGS_MODULE": "config.settings"}
        assert self.start(tmp_path, self.FILE, "-c", ask, **settings).returncode == 0
        run = self.start(tmp_path, self.FILE.replace("127.0.0.1", "192.0.2.10"), "-c", ask, **settings)
        assert run.returncode != 0
        assert "own: this machine has none of the sourceAddresses 192.0.2.10" in run.stderr

    def test_workers_that_may_not_start_end_with_an_error(self, tmp_path):
        run = self.start(tmp_path, self.FILE.replace("127.0.0.1", "192.0.2.10"), "manage.py", "worker")
        assert (run.returncode, run.stderr.count("this machine has none of the sourceAddresses")) == (1, 1)
        assert "is restarted" not in run.stderr


@pytest.mark.django_db(transaction=True)
def test_workers_without_the_route_of_a_stream_do_not_start(alice):
    Stream.objects.create(workspace=alice.workspace, slug="news", name="News", transport_route="gone")
    with pytest.raises(SystemExit, match="there is no route 'gone'"):
        worker_programs()


def test_plans_of_a_file_may_be_the_default(tmp_path):
    path = tmp_path / "plans.yaml"
    path.write_text("team: {emailsPerMonth: 5, domains: unlimited, retentionDays: 30, storageBytes: 0}")
    read = "from config.settings import *; print(PLANS[DEFAULT_PLAN].emails_per_month)"
    assert start("-c", read, PLANS_FILE=str(path), DEFAULT_PLAN="team").stdout == "5\n"
    path.write_text("team: {emailsPerMonth: 5}")
    run = start(PLANS_FILE=str(path), DEFAULT_PLAN="team")
    assert f"PLANS_FILE: {path}, team: domains is missing." in run.stderr
    assert "DEFAULT_PLAN must be one of free, pro, enterprise, not 'team'" in run.stderr


SECRET_NAMES = [*sorted(SECRETS), "ANYMAIL_WEBHOOK_SECRET"]


def secret_file(folder: Path, name: str) -> Path:
    value = {"SMTP_URL": "smtp://u:secret-password@relay.example", "METRICS_TOKEN": "secret-password" * 2}.get(name)
    path = folder / name
    path.write_text(f"{value or VALID.get(name, 'user:secret-password-secret')}\n")
    return path


def test_every_secret_may_be_in_a_file(tmp_path):
    names = (*SECRET_NAMES, "ANYMAIL_POSTMARK_SERVER_TOKEN")
    files = {name: secret_file(tmp_path, name) for name in names}
    shown = (*sorted(SECRETS), "ANYMAIL_WEBHOOK_SECRET", "ANYMAIL")
    (errors, from_files), (_, from_variables) = read_settings(
        (dict.fromkeys(names) | {f"{name}_FILE": str(path) for name, path in files.items()}, shown),
        ({name: path.read_text() for name, path in files.items()}, shown),
    )
    assert errors == []
    assert from_files == from_variables
    assert all(from_files)
    assert "POSTMARK_SERVER_TOKEN" in from_files[-1]


def test_celery_reads_the_url_of_redis_from_a_file(tmp_path):
    path = tmp_path / "redis"
    path.write_text("redis://redis.example:6379/0\n")
    read = "from config.celery import app; print(app.conf.broker_url)"
    assert start("-c", read, REDIS_URL=None, REDIS_URL_FILE=str(path)).stdout == "redis://redis.example:6379/0\n"


def test_a_secret_file_without_a_usable_value_is_an_error(tmp_path):
    rows = [
        (None, "SECRET_KEY_FILE: {path} cannot be read: No such file or directory."),
        (b" \n", "SECRET_KEY_FILE: {path} is empty."),
        (b"\xff\xfe", "SECRET_KEY_FILE: {path} cannot be read: it is not text."),
        (b"secret-password", "SECRET_KEY is too easy to guess."),
    ]
    paths = [tmp_path / str(number) for number in range(len(rows))]
    for path, (content, _) in zip(paths, rows, strict=True):
        if content is not None:
            path.write_bytes(content)
    found = read_settings(*(({"SECRET_KEY": None, "SECRET_KEY_FILE": str(path)}, ()) for path in paths))
    for path, (_, message), (errors, _) in zip(paths, rows, found, strict=True):
        (error,) = errors
        assert error.startswith(message.format(path=path))
        assert "secret-password" not in error


def test_a_secret_given_twice_prevents_the_start(tmp_path):
    path = tmp_path / "secret"
    path.write_text(VALID["SECRET_KEY"])
    run = start(SECRET_KEY_FILE=str(path))
    assert "SECRET_KEY and SECRET_KEY_FILE are both set. Unset one of them." in run.stderr


def test_all_invalid_settings_are_reported_at_once():
    run = start(SECRET_KEY=None, APP_KEYS=None, REDIS_URL=None)
    assert run.returncode != 0
    assert all(f"{name} is missing" in run.stderr for name in ("SECRET_KEY", "APP_KEYS", "REDIS_URL"))


def test_the_web_process_refuses_to_start_without_a_traceback():
    run = start("-c", "import config.wsgi", SECRET_KEY="changeme")
    assert run.returncode != 0
    assert "SECRET_KEY is too easy to guess" in run.stderr
    assert "Traceback" not in run.stderr


def test_the_example_file_lists_every_setting():
    import re

    settings = (REPOSITORY / "config/settings.py").read_text()
    read = set(re.findall(r'env\.\w+\(\s*"([A-Z_]+)"', settings))
    example = set(re.findall(r"^([A-Z_]+)=", (REPOSITORY / ".env.example").read_text(), re.MULTILINE))
    # A prefix stands for all variables that start with it.
    assert read - {"ANYMAIL_"} <= example
    # Read by gunicorn and by the failpoints.
    assert example - read == {"PORT", "FAULT_PLAN", "FAULT_PLAN_IN_PRODUCTION"}


def test_the_deployment_check_reports_nothing():
    result = start("manage.py", "check", "--deploy")
    assert (result.returncode, result.stderr) == (0, "")
    assert result.stdout.startswith("System check identified no issues")
