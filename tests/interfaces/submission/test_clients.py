"""Other programs submit email to the real processes; the message that arrives is compared with the one they sent."""

import email
import json
import os
import re
import smtplib
import ssl
import subprocess
from email import policy
from email.message import EmailMessage
from pathlib import Path

import pytest
import trustme
from django.core.mail import EmailMultiAlternatives, get_connection, send_mail

from tests.stack.stack import REPOSITORY, running_stack, wait_for
from tests.standards.postfix import Postfix
from tests.standards.tools import library, npm_modules, program, swaks

pytestmark = [pytest.mark.stack, pytest.mark.xdist_group("submission-clients")]

SENDER = "hello@demo.example"
MESSAGE = "SELECT recipient, source FROM inbox_caughtmail WHERE subject LIKE %s ORDER BY recipient"
CONTENT = """
SELECT c.text, c.html FROM emails_content c JOIN emails_email e ON e.content_id = c.id WHERE e.subject LIKE %s
"""
EMAILS = "SELECT count(*) FROM emails_email WHERE subject LIKE %s"
NODEMAILER = "nodemailer@7.0.3"
PROGRAMS = Path(__file__).with_name("programs")


@pytest.fixture(scope="module")
def authority():
    return trustme.CA()


@pytest.fixture(scope="module")
def stack(tmp_path_factory, authority):
    folder = tmp_path_factory.mktemp("clients")
    issued = authority.issue_cert("localhost", "127.0.0.1")
    issued.private_key_pem.write_to_path(folder / "key.pem")
    issued.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    authority.cert_pem.write_to_path(folder / "ca.pem")
    tls = {"SUBMISSION_TLS_CERT": str(folder / "cert.pem"), "SUBMISSION_TLS_KEY": str(folder / "key.pem")}
    with running_stack(folder, SUBMISSION_TLS_PORTS="none", **tls) as stack:
        stack.start("inbox", "submission", "worker")
        yield stack


def port_of(stack) -> int:
    return int(stack.environment["SUBMISSION_PORTS"])


def sample(language: str, stack) -> str:
    """Return the first sample of docs/smtp.md in a language, for the running service."""
    guide = (REPOSITORY / "docs" / "smtp.md").read_text(encoding="utf-8")
    found = re.search(rf"^```{language}\n(.*?)^```", guide, re.MULTILINE | re.DOTALL)
    assert found
    text = found[1].replace("mail.example.com", "127.0.0.1").replace("587", str(port_of(stack)))
    return text.replace("hello@example.com", SENDER).replace("pr_…", stack.key)


def arrived(stack, subject: str, *, count: int = 1) -> list[EmailMessage]:
    """Wait for the messages with this subject; return one for each recipient."""
    wait_for(lambda: len(stack.query(MESSAGE, subject)) >= count, seconds=60, what=f"{count} messages: {subject}")
    rows = stack.query(MESSAGE, subject)
    assert len(rows) == count
    return [email.message_from_bytes(bytes(source), policy=policy.default) for _, source in rows]


def content_of(stack, subject: str) -> tuple[str, str]:
    ((text, html),) = stack.query(CONTENT, subject)
    return text, html


def text_of(part) -> str:
    return part.get_content().replace("\r\n", "\n")


def run(*command: str, given: str = "", **variables: str) -> str:
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, timeout=120, check=False, env={**os.environ, **variables}
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def rich_message(subject: str) -> EmailMessage:
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = f"Zoë <{SENDER}>", "Ada <ada@example.com>", subject
    message["X-Postrider-Track-Opens"] = message["X-Postrider-Track-Clicks"] = "false"
    message.set_content("Grüße\n.dot\n")
    message.add_alternative('<p>Grüße <img src="cid:logo@app"></p>\n', subtype="html")
    message.get_payload()[1].add_related(b"\x89PNG", "image", "png", cid="<logo@app>", filename="logo.png")
    message.add_attachment(bytes(range(256)) * 40, maintype="application", subtype="pdf", filename="Übersicht.pdf")
    return message


def check_rich_message(stack, subject: str) -> None:
    (message,) = arrived(stack, subject)
    assert content_of(stack, subject) == ("Grüße\n.dot\n", '<p>Grüße <img src="cid:logo@app"></p>\n')
    assert text_of(message.get_body(("plain",))).startswith("Grüße\n.dot\n")
    assert '<p>Grüße <img src="cid:logo@app"></p>' in text_of(message.get_body(("html",)))
    assert message["From"] == f"Zoë <{SENDER}>"
    files = {part.get_filename(): part for part in message.walk() if part.get_filename()}
    assert files["logo.png"]["Content-ID"] == "<logo@app>"
    assert files["logo.png"].get_content() == b"\x89PNG"
    assert files["Übersicht.pdf"].get_content() == bytes(range(256)) * 40
    assert "X-Postrider" not in str(message.items())


def test_smtplib_with_starttls(stack, authority):
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with smtplib.SMTP("localhost", port_of(stack), timeout=30) as client:
        client.starttls(context=context)
        client.login("postrider", stack.key)
        assert client.send_message(rich_message("By smtplib")) == {}
    check_rich_message(stack, "By smtplib")


def test_djangos_backend(stack):
    connection = get_connection(
        "django.core.mail.backends.smtp.EmailBackend",
        host="127.0.0.1", port=port_of(stack), username="postrider", password=stack.key,
    )  # fmt: skip
    headers = {"X-Shop": "1", "Idempotency-Key": "django-1"}
    for _ in range(2):
        message = EmailMultiAlternatives(
            "By Django", "Grüße", f"Shop <{SENDER}>", ["ada@example.com"], bcc=["eve@example.com"],
            connection=connection, reply_to=["help@example.com"], headers=headers,
        )  # fmt: skip
        message.attach_alternative("<p>Grüße</p>", "text/html")
        message.attach("a.csv", "a;ü\n", "text/csv")
        assert message.send() == 1
    first, second = arrived(stack, "By Django", count=2)
    assert stack.query(EMAILS, "By Django") == [(1,)]
    assert content_of(stack, "By Django")[1] == "<p>Grüße</p>"
    for sent in (first, second):
        assert (sent["To"], sent["Bcc"], sent["Reply-To"]) == ("ada@example.com", None, "help@example.com")
        assert (sent["X-Shop"], sent["Idempotency-Key"]) == ("1", None)
        assert [text_of(part) for part in sent.iter_attachments()] == ["a;ü\n"]
    assert b"eve@example.com" not in first.as_bytes() + second.as_bytes()


def test_nodemailer_with_a_pool(stack):
    script = Path(__file__).with_name("nodemailer.js")
    modules = npm_modules(NODEMAILER)
    output = run(program("node", package="nodejs"), str(script), str(port_of(stack)), stack.key, NODE_PATH=str(modules))
    assert all(reply.startswith("250 2.0.0 Accepted as ") for reply in json.loads(output))
    messages = arrived(stack, "Nodemailer %", count=20)
    for message in messages:
        number = int(str(message["Subject"]).split()[1])
        text = text_of(message.get_body(("plain",)))
        assert text.startswith("Grüße 🎉\n.leading dot\n" + "x" * 2000)
        kinds = [part.get_content_type() for part in message.walk()]
        assert kinds == [
            "multipart/mixed", "multipart/related", "multipart/alternative", "text/plain", "text/html", "text/calendar",
            "image/png", "application/pdf", "application/ics",
        ]  # fmt: skip
        parts = dict(zip(kinds, message.walk(), strict=True))
        assert parts["text/calendar"].get_param("method") == "REQUEST"
        assert "METHOD:REQUEST" in parts["text/calendar"].get_content()
        assert parts["application/pdf"].get_content() == bytes([number]) * 100_000
        assert (message["Cc"], message["Bcc"], message["X-Shop"]) == ("carol@example.com", None, "1")
        assert message["Reply-To"] == "a@example.com, b@example.com"


def check_message_of_a_framework(stack, subject: str) -> None:
    """The message of programs/symfony.php and programs/phpmailer.php arrived for both recipients, byte for byte."""
    messages = arrived(stack, subject, count=2)
    text, html = content_of(stack, subject)
    assert text.splitlines() == ["Grüße", ".dot"]
    image = re.fullmatch(r'<p>Grüße <img src="cid:(.+)"></p>\s*', html)
    for message in messages:
        assert (message["From"], message["To"].addresses[0].addr_spec) == (f"Zoë <{SENDER}>", "ada@example.com")
        assert (message["Reply-To"], message["Bcc"]) == ("help@example.com", None)
        assert text_of(message.get_body(("plain",))).startswith("Grüße\n.dot")
        inline = [part for part in message.walk() if part["Content-ID"]]
        assert [(part["Content-ID"], part.get_content()) for part in inline] == [(f"<{image[1]}>", b"\x89PNG")]
        files = {part.get_filename(): part.get_content() for part in message.iter_attachments() if part.get_filename()}
        assert files["Übersicht.pdf"] == bytes(range(256)) * 40


def test_symfonys_mailer(stack):
    library("share/php/Symfony/Component/Mailer/autoload.php", package="php-symfony-mailer")
    php = program("php", package="php-cli")
    dsn = f"smtp://postrider:{stack.key}@localhost:{port_of(stack)}?verify_peer=0"
    run(php, str(PROGRAMS / "symfony.php"), dsn)
    check_message_of_a_framework(stack, "By Symfony")


def test_phpmailer(stack):
    library("share/php/libphp-phpmailer/autoload.php", package="libphp-phpmailer")
    php = program("php", package="php-cli")
    run(php, str(PROGRAMS / "phpmailer.php"), str(port_of(stack)), stack.key)
    check_message_of_a_framework(stack, "By PHPMailer")


def test_rubys_net_smtp(stack):
    run(program("ruby", package="ruby"), str(PROGRAMS / "net_smtp.rb"), str(port_of(stack)), stack.key)
    first, second = arrived(stack, "By Net::SMTP", count=2)
    assert content_of(stack, "By Net::SMTP")[0].splitlines() == ["Grüße", ".dot"]
    for message in (first, second):
        (file,) = message.iter_attachments()
        assert (file.get_filename(), file.get_content()) == ("a.pdf", bytes(range(256)) * 40)
        assert (message["To"], message["Bcc"]) == ("ada@example.com", None)
    assert b"eve@example.com" not in first.as_bytes() + second.as_bytes()


def test_swaks_as_in_the_guide(stack):
    run("sh", "-c", sample("sh", stack).replace("swaks", swaks(), 1), POSTRIDER_API_KEY=stack.key)
    (message,) = arrived(stack, "Hello")
    assert text_of(message).startswith("It works.")


def test_django_as_in_the_guide(stack, authority, settings, monkeypatch):
    monkeypatch.setenv("POSTRIDER_API_KEY", stack.key)
    values = {"os": os}
    exec(sample("python", stack), values)
    for name in values.keys() - {"os", "__builtins__"}:
        setattr(settings, name, values[name])
    with authority.cert_pem.tempfile() as trusted:
        monkeypatch.setenv("SSL_CERT_FILE", trusted)
        assert send_mail("By the sample for Django", "It works.", None, ["ada@example.com"]) == 1
    (message,) = arrived(stack, "By the sample for Django")
    assert message["From"] == f"Example <{SENDER}>"


def test_nodemailer_as_in_the_guide(stack, authority):
    mail = json.dumps({"from": SENDER, "to": "ada@example.com", "subject": "By the sample in JavaScript", "text": "Hi"})
    script = f"""
        const nodemailer = require("nodemailer");
        {sample("js", stack)}
        transport.sendMail({mail}).then(() => transport.close());
    """
    node, modules = program("node", package="nodejs"), str(npm_modules(NODEMAILER))
    with authority.cert_pem.tempfile() as trusted:
        run(node, "-e", script, NODE_PATH=modules, NODE_EXTRA_CA_CERTS=trusted, POSTRIDER_API_KEY=stack.key)
    arrived(stack, "By the sample in JavaScript")


def test_msmtp(stack, tmp_path):
    msmtp = program("msmtp", package="msmtp")
    configuration = tmp_path / "msmtprc"
    configuration.write_text(
        f"account default\nhost 127.0.0.1\nport {port_of(stack)}\ntls on\ntls_starttls on\ntls_certcheck off\nauth on\n"
        f"user postrider\npassword {stack.key}\nfrom {SENDER}\n"
    )
    configuration.chmod(0o600)
    source = f"From: {SENDER}\nTo: ada@example.com\nSubject: By msmtp\n\nIt works.\n.dot\n"
    run(msmtp, "-C", str(configuration), "ada@example.com", given=source)
    (message,) = arrived(stack, "By msmtp")
    assert text_of(message).startswith("It works.\n.dot\n")


def test_curl_as_printed_by_bin_run(stack):
    from tools.embedded.demo import DemoAccount

    curl = program("curl", package="curl")
    demo = DemoAccount("", {"apiKey": stack.key, "from": f"Demo <{SENDER}>"})
    run("sh", "-c", demo.curl_smtp(str(port_of(stack))).replace("curl", curl, 1))
    (message,) = arrived(stack, "Hello over SMTP")
    assert text_of(message.get_body(("plain",))).startswith("It works.")


def test_postfix_as_a_smart_host(stack, tmp_path):
    passwords = tmp_path / "passwords"
    passwords.write_text(f"[127.0.0.1]:{port_of(stack)} postrider:{stack.key}\n")
    settings = {
        **dict(line.split(" = ") for line in sample("text", stack).splitlines()),
        "transport_maps": "",
        # Postfix does not know the authority of the certificate.
        "smtp_tls_security_level": "encrypt",
        "smtp_sasl_password_maps": f"texthash:{passwords}",
    }
    tmp_path.chmod(0o755)
    for directory in tmp_path.parents:
        if directory.is_relative_to("/tmp/pytest-of-root"):
            directory.chmod(0o755)
    # Postfix's client signs in with it.
    library("lib/*/sasl2/libplain.so", package="libsasl2-modules")
    with Postfix(routes={}, settings=settings) as relay, smtplib.SMTP("127.0.0.1", relay.port) as client:
        to = [f"r{number}@example.com" for number in range(60)]
        client.sendmail(SENDER, to, rich_message("By Postfix").as_bytes(policy=policy.SMTP))
        try:
            messages = arrived(stack, "By Postfix", count=60)
        except AssertionError as error:
            raise AssertionError(relay.log()) from error
    assert {str(message["To"]) for message in messages} == {"Ada <ada@example.com>"}
    assert {part.get_content() for part in messages[0].walk() if part.get_filename() == "Übersicht.pdf"} == {
        bytes(range(256)) * 40
    }
