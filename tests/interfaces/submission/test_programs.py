"""Other programs sign in with each mechanism that they have, and send an email. test_auth.py has their exchanges."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.lib.email_addresses import parse_address
from emails.models import Email
from tests.conftest import make_key
from tests.interfaces.submission.fixtures import run_submission
from tests.stack.servers import running_server
from tests.stack.stack import REPOSITORY, free_port, wait_for
from tests.standards.tools import library, npm_modules, program, swaks

pytestmark = [pytest.mark.full, pytest.mark.django_db(transaction=True)]

PROGRAMS = Path(__file__).with_name("programs")
SENDER, RECIPIENT = "hi@alice.example", "ada@example.com"
HEADER = f"From: {SENDER}\nTo: {RECIPIENT}\nSubject: "


def by_swaks(port: str, key: str, mechanism: str, subject: str) -> list[str]:
    return [swaks(), "--server", f"127.0.0.1:{port}", "--auth", mechanism, "--auth-user", "postrider",
            "--auth-password", key, "--from", SENDER, "--to", RECIPIENT, "--header", f"Subject: {subject}"]  # fmt: skip


def by_msmtp(port: str, key: str, mechanism: str, subject: str) -> list[str]:
    return [program("msmtp", package="msmtp"), "-C", "/dev/null", "--host=127.0.0.1", f"--port={port}", "--tls=off",
            f"--auth={mechanism.lower()}", "--user=postrider", f"--passwordeval=echo {key}", f"--from={SENDER}",
            RECIPIENT]  # fmt: skip


def by_curl(port: str, key: str, mechanism: str, subject: str) -> list[str]:
    return [program("curl", package="curl"), "-sS", f"smtp://127.0.0.1:{port}", "--user", f"postrider:{key}",
            "--login-options", f"AUTH={mechanism}", "--mail-from", SENDER, "--mail-rcpt", RECIPIENT,
            "--crlf", "--upload-file", "-"]  # fmt: skip


def by_s_nail(port: str, key: str, mechanism: str, subject: str) -> list[str]:
    return [program("s-nail", package="s-nail"), "-:/", "-Sv15-compat", f"-Smta=smtp://postrider:{key}@127.0.0.1:{port}",
            f"-Ssmtp-auth={mechanism.lower()}", f"-Sfrom={SENDER}", "-s", subject, RECIPIENT]  # fmt: skip


def by_phpmailer(*arguments: str) -> list[str]:
    library("share/php/libphp-phpmailer/autoload.php", package="libphp-phpmailer")
    return [program("php", package="php-cli"), str(PROGRAMS / "sign_in.php"), *arguments]


def by_perls_net_smtp(*arguments: str) -> list[str]:
    library("share/perl5/Authen/SASL.pm", package="libauthen-sasl-perl")
    return [program("perl", package="perl"), str(PROGRAMS / "sign_in.pl"), *arguments]


def by_rubys_net_smtp(*arguments: str) -> list[str]:
    return [program("ruby", package="ruby"), str(PROGRAMS / "sign_in.rb"), *arguments]


def by_nodemailer(*arguments: str) -> list[str]:
    modules = npm_modules("nodemailer@7.0.3")
    node = program("node", package="nodejs")
    return ["env", f"NODE_PATH={modules}", node, str(PROGRAMS / "sign_in.js"), *arguments]


def by_smtplib(*arguments: str) -> list[str]:
    return [sys.executable, str(PROGRAMS / "sign_in_smtplib.py"), *arguments]


def by_aiosmtplib(*arguments: str) -> list[str]:
    library("lib/python3/dist-packages/aiosmtplib/auth.py", package="python3-aiosmtplib")
    return ["/usr/bin/python3", str(PROGRAMS / "sign_in_aiosmtplib.py"), *arguments]


@pytest.mark.parametrize(
    "command",
    [by_swaks, by_msmtp, by_curl, by_s_nail, by_phpmailer, by_perls_net_smtp, by_rubys_net_smtp, by_nodemailer,
     by_smtplib, by_aiosmtplib],
)  # fmt: skip
def test_a_program_signs_in_with_each_mechanism(port, command):
    for mechanism in ("PLAIN", "LOGIN"):
        # Programs that read the message from their input get its header, too; s-nail would show it as text.
        given = "It works.\n" if command is by_s_nail else f"{HEADER}{mechanism}\n\nIt works.\n"
        done = subprocess.run(
            command(str(port.number), port.key, mechanism, mechanism),
            input=given, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert sorted(Email.objects.values_list("subject", flat=True)) == ["LOGIN", "PLAIN"]


@pytest.mark.parametrize("command", [by_phpmailer, by_nodemailer])
def test_names_that_need_quotes_and_repeated_fields_are_accepted(port, command):
    script = {by_phpmailer: "spellings.php", by_nodemailer: "spellings.js"}[command]
    *program, _, _, _ = command(str(port.number), port.key)
    done = subprocess.run(
        [*program, str(PROGRAMS / script), str(port.number), port.key],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    emails = Email.objects.all()
    assert len(emails) == (6 if command is by_phpmailer else 12)
    for email in emails:
        sender, recipient = parse_address(email.sender), parse_address(email.to[0])
        assert (sender.name, recipient.name, email.headers.get("X-Virus-Scanned", "a")) == (
            email.subject, email.subject, "a",
        )  # fmt: skip


@contextmanager
def running_alertmanager(folder: Path, configuration: str, **variables: str) -> Iterator[str]:
    """Run an Alertmanager on a free port; yield its URL."""
    path = program("prometheus-alertmanager", package="prometheus-alertmanager")
    (folder / "alertmanager.yml").write_text(configuration)
    address = f"127.0.0.1:{free_port()}"
    arguments = ["--config.file=alertmanager.yml", "--storage.path=.", f"--web.listen-address={address}"]
    alertmanager = running_server(
        [path, *arguments, "--cluster.listen-address="],
        is_ready=lambda: is_ready(f"http://{address}"),
        log=folder / "log",
        cwd=folder,
        env={**os.environ, **variables},
    )
    with alertmanager:
        yield f"http://{address}"


def is_ready(url: str) -> bool:
    try:
        return urllib.request.urlopen(f"{url}/-/ready", timeout=2).status == 200
    except OSError:
        return False


@pytest.mark.parametrize(("offer", "require_tls"), [("AUTH PLAIN LOGIN", True), ("AUTH LOGIN PLAIN", False)])
def test_alertmanager_as_in_the_guide(workspace, settings, certificate, tmp_path, monkeypatch, offer, require_tls):
    # Alertmanager uses the first mechanism of EHLO that it knows, and compares the prompts of LOGIN.
    monkeypatch.setattr("interfaces.submission.handler.OFFER", offer)
    key = make_key(workspace, "sending_access")
    certificate.cert_pem.write_to_path(tmp_path / "ca.pem")
    guide = (REPOSITORY / "docs" / "smtp.md").read_text(encoding="utf-8")
    sample = re.search(r"^```yaml\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)[1]
    with run_submission(settings) as port:
        configuration = sample.replace("mail.example.com:587", f"localhost:{port.number}").replace("pr_…", key)
        configuration = configuration.replace("alerts@example.com", SENDER)
        configuration = configuration.replace("  receiver: mail\n", "  receiver: mail\n  group_wait: 0s\n")
        configuration += "" if require_tls else "        require_tls: false\n"
        with running_alertmanager(tmp_path, configuration, SSL_CERT_FILE=str(tmp_path / "ca.pem")) as url:
            alerts = json.dumps([{"labels": {"alertname": "DiskFull"}}]).encode()
            headers = {"Content-Type": "application/json"}
            urllib.request.urlopen(urllib.request.Request(f"{url}/api/v2/alerts", alerts, headers), timeout=30)
            try:
                wait_for(Email.objects.exists, seconds=60, what="an email")
            except AssertionError as error:
                raise AssertionError((tmp_path / "log").read_text()) from error
    email = Email.objects.get()
    assert (email.to, email.subject.split()) == (["ops@example.net"], ["[FIRING:1]", "(DiskFull)"])
    assert "alertname = DiskFull" in re.sub(r"<[^>]*>|\s+", " ", email.content.html)
