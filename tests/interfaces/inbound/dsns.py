"""DSNs and complaints with given fields; independent of Django, so that the chaos run can send them too."""


def dsn(
    address="ada@example.com", *, action="failed", status="5.1.1", code="550", text="No such user", extra=""
) -> bytes:
    """Return a DSN of RFC 3464."""
    lines = f"""From: MAILER-DAEMON@mx.example.com
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="b1"

--b1

This is the mail system at host mx.example.com.

--b1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.com

{extra}Final-Recipient: rfc822; {address}
Action: {action}
Status: {status}
Diagnostic-Code: smtp; {code} {status} <{address}>: {text}

--b1
Content-Type: text/rfc822-headers

Subject: Hello

--b1--
"""
    return lines.replace("\n", "\r\n").encode()


def complaint(message: bytes, *, fields: str = "") -> bytes:
    """Return a complaint of RFC 5965 about a message."""
    head = f"""From: fbl@provider.example
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="b"

--b

This is an email abuse report.
--b
Content-Type: message/feedback-report

Feedback-Type: abuse
{fields}User-Agent: Provider/1

--b
Content-Type: message/rfc822

"""
    return head.replace("\n", "\r\n").encode() + message + b"\r\n--b--\r\n"
