"""The guides for frameworks: settings and code of each page send an email with the mailer of the framework.

Debian has older versions of the frameworks; the pages say which ones. See docs/decisions/0214.
"""

import json
import re
import subprocess
import time
from pathlib import Path

import pytest
import trustme

from tests.clients.node import need_node
from tests.console.documentation.conftest import SECONDS
from tests.console.documentation.test_samples import fences
from tests.stack.stack import Stack, free_port, running_stack, wait_for
from tests.standards.tools import library, program
from webhooks.sending.signing import signature_headers

pytestmark = pytest.mark.full

PROGRAMS = Path(__file__).with_name("programs")
SUBJECT, ADDRESS, HTML = "Order 1042 has left", "ada@example.com", "<p>Order 1042 is on its way.</p>"
ARRIVED = """
SELECT count(DISTINCT e.id), min(e.tags::text), min(c.html) FROM emails_email e
JOIN emails_content c ON c.id = e.content_id JOIN inbox_caughtmail i ON i.subject = e.subject
WHERE e.subject = %s AND i.recipient = %s
"""
SPRING = (
    ("spring3-core", "libspring-core-java"),
    ("spring3-beans", "libspring-beans-java"),
    ("spring3-context", "libspring-context-java"),
    ("spring3-context.support", "libspring-context-support-java"),
    ("javax.mail", "libmail-java"),
    ("javax.activation", "libactivation-java"),
    ("commons-logging", "libcommons-logging-java"),
)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """Return a service that accepts email over SMTP, with a certificate for localhost."""
    folder, authority = tmp_path_factory.mktemp("frameworks"), trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    tls = {"SUBMISSION_TLS_CERT": str(folder / "cert.pem"), "SUBMISSION_TLS_KEY": str(folder / "key.pem")}
    with running_stack(folder, SUBMISSION_TLS_PORTS=str(free_port()), **tls) as stack:
        stack.start("inbox", "submission", "worker", "web")
        yield stack


@pytest.fixture
def authority(service: Stack) -> str:
    return str(service.logs / "ca.pem")


@pytest.fixture(autouse=True)
def empty(service: Stack):
    yield
    service.execute("TRUNCATE inbox_caughtmail, emails_email, emails_acceptance CASCADE")


def blocks(page: str, language: str, stack: Stack) -> list[str]:
    """Return the code of a guide in a language, for the running service."""
    replaced = {"mail.example.com": "localhost", "587": stack.environment["SUBMISSION_PORTS"], "pr_…": stack.key}
    found = [text for name, text in fences(f"frameworks/{page}") if name == language]
    return [re.sub("|".join(map(re.escape, replaced)), lambda match: replaced[match[0]], text) for text in found]


def run(*command: str, home: Path, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=home, capture_output=True, text=True, timeout=SECONDS, check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(home), **variables},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def write(home: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        file = home / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def check_arrived(stack: Stack, *, html: str = HTML) -> None:
    """Check that one email has arrived, with its tag."""
    wait_for(lambda: stack.query(ARRIVED, SUBJECT, ADDRESS)[0][0], seconds=60, what=SUBJECT)
    count, tags, content = stack.query(ARRIVED, SUBJECT, ADDRESS)[0]
    assert (count, "order" in tags, content.strip()) == (1, True, html)


def test_rails(service, authority, tmp_path):
    library("share/rubygems-integration/all/gems/actionmailer-*", package="ruby-actionmailer")
    (view,) = blocks("rails", "erb", service)
    settings, mailer, send, job = blocks("rails", "ruby", service)
    names = {"settings.rb": settings, "mailer.rb": mailer, "send.rb": send, "job.rb": job}
    write(tmp_path, {**names, "views/order_mailer/shipped.html.erb": view})
    ruby = program("ruby", package="ruby")
    for _ in range(2):
        variables = {"POSTRIDER_API_KEY": service.key, "SSL_CERT_FILE": authority}
        run(ruby, str(PROGRAMS / "rails.rb"), str(tmp_path), home=tmp_path, **variables)
    check_arrived(service)


def test_laravel(service, authority, tmp_path):
    library("share/php/Illuminate/Mail/autoload.php", package="php-illuminate-mail")
    (settings,), (sample,) = blocks("laravel", "ini", service), blocks("laravel", "php", service)
    write(tmp_path, {".env": settings, "sample.php": f"<?php\n{sample}"})
    php = program("php", package="php-cli")
    for _ in range(2):
        trust = ("-d", f"openssl.cafile={authority}")
        run(php, *trust, str(PROGRAMS / "laravel.php"), ".env", "sample.php", home=tmp_path)
    check_arrived(service)


def test_the_settings_of_laravel_with_symfonys_mailer(service, authority, tmp_path):
    values = dict(line.split("=", 1) for line in blocks("laravel", "ini", service)[0].split())
    assert values["MAIL_MAILER"] == "smtp"
    dsn = "smtp://{MAIL_USERNAME}:{MAIL_PASSWORD}@{MAIL_HOST}:{MAIL_PORT}".format_map(values)
    send_with_symfony(dsn, service, authority, tmp_path)


def test_symfony(service, authority, tmp_path):
    (setting,) = blocks("symfony", "ini", service)
    send_with_symfony(setting.strip().removeprefix("MAILER_DSN="), service, authority, tmp_path)


def send_with_symfony(dsn: str, service: Stack, authority: str, home: Path) -> None:
    library("share/php/Symfony/Component/Mailer/autoload.php", package="php-symfony-mailer")
    (sample,) = blocks("symfony", "php", service)
    write(home, {"OrderMails.php": f"<?php\n{sample}"})
    php = program("php", package="php-cli")
    for _ in range(2):
        trust = ("-d", f"openssl.cafile={authority}")
        run(php, *trust, str(PROGRAMS / "symfony.php"), dsn, "OrderMails.php", home=home)
    check_arrived(service)


def test_spring(service, authority, tmp_path):
    jars = [library(f"share/java/{name}.jar", package=package) for name, package in SPRING]
    javac, java = program("javac", package="default-jdk-headless"), program("java", package="default-jre-headless")
    keytool = program("keytool", package="default-jre-headless")
    (properties,), (mails, signature) = blocks("spring", "properties", service), blocks("spring", "java", service)
    properties = properties.replace("${POSTRIDER_API_KEY}", service.key)
    write(
        tmp_path, {"application.properties": properties, "OrderMails.java": mails, "WebhookSignature.java": signature}
    )
    path = ":".join([".", *map(str, jars)])
    run(javac, "-cp", path, "-d", ".", str(PROGRAMS / "Send.java"), *("OrderMails.java", "WebhookSignature.java"),
        home=tmp_path)  # fmt: skip
    store = ("-keystore", "trusted", "-storepass", "changeit", "-noprompt")
    run(keytool, "-importcert", "-file", authority, "-alias", "test", *store, home=tmp_path)
    vector = json.loads((PROGRAMS.parents[3] / "docs" / "webhook-vector.json").read_text())
    trust = ("-Djavax.net.ssl.trustStore=trusted", "-Djavax.net.ssl.trustStorePassword=changeit")
    write(tmp_path, {"body.json": vector["body"]})
    arguments = ("application.properties", "body.json", vector["signature"], vector["secret"])
    for _ in range(2):
        output = run(java, *trust, "-cp", path, "Send", *arguments, home=tmp_path)
        assert output.split() == ["true", "false"]
    check_arrived(service)


def test_the_routes_of_nextjs(service, libraries, tmp_path):
    """The routes have the interface that Next.js calls: a web Request in, a web Response out."""
    need_node()
    order, events = blocks("nextjs", "javascript", service)
    write(tmp_path, {"app/api/orders/route.mjs": order, "app/api/events/route.mjs": events})
    write(tmp_path, {"next.mjs": (PROGRAMS / "next.mjs").read_text()})
    (tmp_path / "node_modules").symlink_to(libraries)
    created = service.call("POST", "/webhooks", {"url": "http://127.0.0.1:9/", "events": ["bounced"]}).body
    body, headers = signed_event(created["secret"])
    output = run(
        program("node", package="nodejs"), "next.mjs", body, json.dumps(headers), home=tmp_path,
        POSTRIDER_URL=service.url, POSTRIDER_API_KEY=service.key, POSTRIDER_WEBHOOK_SECRET=created["secret"],
    )  # fmt: skip
    result = json.loads(output.splitlines()[-1])
    assert result["first"] == result["second"]
    assert result["refused"] == [422, {"error": "validation_error"}]
    assert (result["genuine"], result["forged"]) == (204, 401)
    assert "bounced: ada@example.com unknown_user" in output
    check_arrived(service)


def signed_event(secret: str) -> tuple[str, dict[str, str]]:
    """Return the body of a webhook request and its headers."""
    body = json.dumps({"event": "bounced", "data": {"to": ADDRESS, "reason": "unknown_user"}})
    return body, signature_headers(body.encode(), message_id="whd_1", timestamp=int(time.time()), keys=[secret])
