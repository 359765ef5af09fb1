"""AUTH over real SMTP, line by line: the exchanges of programs, their variants, and refusals (RFC 4954, RFC 4616).

In a dialogue, the client sends the lines with > and reads those with <: a challenge whole, otherwise the codes.
"""

from base64 import b64encode

import pytest

pytestmark = pytest.mark.django_db(transaction=True)

USER_NAME, PASSWORD = "334 VXNlcm5hbWU6", "334 UGFzc3dvcmQ6"
SIGNED_IN = "235 2.7.0"
INVALID = "501 5.5.2"
# Each with the programs whose source has it; test_programs.py runs some of them.
DIALOGUES = {
    # smtppool pool.go compares the prompts, Alertmanager notify/email/email.go without case, gomail auth.go (Grafana)
    # without case and colon; another one ends the exchange. Others read the code only: Jakarta Mail SMTPTransport.java,
    # PHPMailer, swaks, msmtp, curl, Nodemailer, Ruby's net-smtp, s-nail.
    "LOGIN": f"> AUTH LOGIN\n< {USER_NAME}\n> <user>\n< {PASSWORD}\n> <key>\n< {SIGNED_IN}",
    # Python's smtplib, aiosmtplib auth.py
    "LOGIN with an initial response": f"> AUTH LOGIN <user>\n< {PASSWORD}\n> <key>\n< {SIGNED_IN}",
    # .NET SmtpLoginAuthenticationModule.cs
    "login in lower case": f"> AUTH login <user>\n< {PASSWORD}\n> <key>\n< {SIGNED_IN}",
    "a printer's": f"> auth login \n< {USER_NAME}\n> <user> \n< {PASSWORD}\n> <key> \n< {SIGNED_IN}",
    "LOGIN without a user name": f"> AUTH LOGIN =\n< {PASSWORD}\n> <key>\n< {SIGNED_IN}",
    "LOGIN with an empty response": f"> AUTH LOGIN\n< {USER_NAME}\n> \n< {PASSWORD}\n> <key>\n< {SIGNED_IN}",
    "LOGIN in one piece": f"> AUTH LOGIN\n> <user>\n> <key>\n< {USER_NAME}\n< {PASSWORD}\n< {SIGNED_IN}",
    # Go's net/smtp (Alertmanager, gomail, smtppool), smtplib, aiosmtplib, Nodemailer, swaks, msmtp, net-smtp, s-nail
    "PLAIN": f"> AUTH PLAIN <plain>\n< {SIGNED_IN}",
    # PHPMailer SMTP.php, curl without --sasl-ir
    "PLAIN without an initial response": f"> AUTH PLAIN\n< 334 \n> <plain>\n< {SIGNED_IN}",
    # Jakarta Mail, nullmailer protocols/smtp.cc
    "PLAIN with an authorization identity": f"> AUTH PLAIN <authorized>\n< {SIGNED_IN}",
    "PLAIN with other bytes than UTF-8": f"> AUTH PLAIN <latin1>\n< {SIGNED_IN}",
    "PLAIN of 12,288 bytes": f"> AUTH PLAIN <long>\n< {SIGNED_IN}",
    "PLAIN with a response of 12,288 bytes": f"> AUTH PLAIN\n< 334 \n> <long>\n< {SIGNED_IN}",
    "a command after AUTH in one piece": f"> AUTH PLAIN <plain>\n> NOOP\n< {SIGNED_IN}\n< 250 2.0.0",
}
REFUSALS = {
    "cancelled": f"> AUTH LOGIN\n< {USER_NAME}\n> *\n< 501 5.7.0",
    "cancelled at the password": f"> AUTH LOGIN <user>\n< {PASSWORD}\n> *\n< 501 5.7.0",
    "cancelled PLAIN": "> AUTH PLAIN\n< 334 \n> *\n< 501 5.7.0",
    "not base64": f"> AUTH PLAIN %\n< {INVALID}",
    "not ASCII": f"> AUTH LOGIN ü\n< {INVALID}",
    "a response that is not base64": f"> AUTH LOGIN\n< {USER_NAME}\n> postrider!\n< {INVALID}",
    "a password that is not base64": f"> AUTH LOGIN <user>\n< {PASSWORD}\n> pr_x\n< {INVALID}",
    "= as a later response": f"> AUTH PLAIN\n< 334 \n> =\n< {INVALID}",
    "an empty PLAIN": f"> AUTH PLAIN =\n< {INVALID}",
    "one part": f"> AUTH PLAIN <user>\n< {INVALID}",
    "four parts": f"> AUTH PLAIN <parts>\n< {INVALID}",
    "a long response": "> AUTH PLAIN\n< 334 \n> <too_long>\n< 500 5.5.6",
    "a long password": f"> AUTH LOGIN <user>\n< {PASSWORD}\n> <too_long>\n< 500 5.5.6",
    "a long command": "> AUTH PLAIN <too_long>\n< 500 5.5.2",
    "no mechanism": "> AUTH\n< 501 5.5.4",
    "two initial responses": "> AUTH PLAIN <plain> <plain>\n< 501 5.5.4",
    "another mechanism": "> AUTH CRAM-MD5\n< 504 5.5.4",
    "an empty password": f"> AUTH LOGIN <user>\n< {PASSWORD}\n> \n< 535 5.7.8",
}


def encoded(*parts: bytes) -> str:
    return b64encode(b"\0".join(parts)).decode()


def responses(key: str) -> dict[str, str]:
    password = key.encode()
    return {
        "<user>": encoded("Zoë".encode()),
        "<key>": encoded(password),
        "<plain>": encoded(b"", "Zoë".encode(), password),
        "<authorized>": encoded(b"zoe", b"zoe", password),
        "<latin1>": encoded(b"", b"Zo\xeb", password),
        "<long>": encoded(b"", b"x" * (12_288 * 3 // 4 - 2 - len(password)), password),
        "<parts>": encoded(b"", b"zoe", password, b""),
        "<too_long>": "QUFB" * 10_000,
    }


def replay(session, dialogue: str, key: str) -> str:
    """Send the client's lines; return the dialogue with the replies that came."""
    replies, lines = session.connection.makefile("rb"), []
    for line in dialogue.splitlines():
        if line.startswith("> "):
            sent = line[2:]
            for name, value in responses(key).items():
                sent = sent.replace(name, value)
            session.connection.sendall(sent.encode() + b"\r\n")
            lines.append(line)
        else:
            reply = replies.readline().decode().removesuffix("\r\n")
            lines.append("< " + (reply if reply.startswith("334") else " ".join(reply.split(" ")[:2])))
    return "\n".join(lines)


def test_programs_sign_in_as_their_source_says(port):
    differences = {}
    for name, dialogue in DIALOGUES.items():
        with port.open_session() as session:
            if (found := replay(session, dialogue, port.key)) != dialogue:
                differences[name] = found
    assert differences == {}


def test_a_refused_exchange_leaves_the_session_working(port):
    differences = {}
    for name, refusal in REFUSALS.items():
        dialogue = f"{refusal}\n{DIALOGUES['PLAIN']}"
        with port.open_session() as session:
            if (found := replay(session, dialogue, port.key)) != dialogue:
                differences[name] = found
    assert differences == {}


def test_signing_in_comes_after_ehlo_and_once(port):
    with port.open_session(greeted=False) as session:
        before = "> AUTH PLAIN <plain>\n< 503 5.5.1"
        assert replay(session, before, port.key) == before
    again = "> AUTH PLAIN <plain>\n< 503 5.5.1\n> AUTH LOGIN\n< 503 5.5.1"
    dialogue = f"{DIALOGUES['PLAIN']}\n{again}\n> MAIL FROM:<a@b.example>\n< 250 2.1.0\n{again}\n> NOOP\n< 250 2.0.0"
    with port.open_session() as session:
        assert replay(session, dialogue, port.key) == dialogue


def test_the_auth_parameter_of_mail_may_have_500_characters(port):
    with port.open_session() as session, port.open_session():
        replay(session, DIALOGUES["PLAIN"], port.key)
        # 512 bytes, and those for SIZE, BODY, SMTPUTF8, AUTH and BY.
        for length, code in ((1_082, "250 2.1.0"), (1_083, "500 5.5.2")):
            mail = "MAIL FROM:<a@b.example> SIZE=100 AUTH=".ljust(length, "a")
            dialogue = f"> {mail}\n< {code}\n> RSET\n< 250 2.0.0"
            assert replay(session, dialogue, port.key) == dialogue


def test_a_password_that_is_sent_as_a_command_is_not_logged(port, caplog):
    with port.open_session() as session:
        session.exchange(b"AUTH CRAM-MD5\r\n")
        assert session.exchange(port.key.encode() + b"\r\n").startswith("500")
        session.exchange(b"AUTH LOGIN\r\n")
        assert session.exchange(port.key.encode() + b"\r\n").startswith("501")
    assert port.key.upper() not in caplog.text.upper()
