"""Messages that are made to take long or much memory, by their names."""

import base64
import hashlib
from collections.abc import Callable

from receiving.reading.libraries import canonicalization

CANONICAL = {
    b"relaxed/relaxed": canonicalization.Relaxed.canonicalize_body,
    b"simple/simple": canonicalization.Simple.canonicalize_body,
}
MIB = 1024 * 1024
SIZE = 25 * MIB


def _nested(depth: int) -> bytes:
    heads = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\r\n\r\n--b%d\r\n" % (number, number) for number in range(depth)
    )
    return b"MIME-Version: 1.0\r\n" + heads + b"\r\nHello\r\n"


def _parts(count: int, body: bytes = b"x") -> bytes:
    head = b"Content-Type: multipart/mixed; boundary=b\r\n\r\n"
    return head + b"".join(b"--b\r\nContent-Type: a/b\r\n\r\n%b\r\n" % body for _ in range(count)) + b"--b--\r\n"


def _text(kind: bytes, body: bytes, encoding: bytes = b"8bit") -> bytes:
    return b"Content-Type: %b\r\nContent-Transfer-Encoding: %b\r\n\r\n%b" % (kind, encoding, body)


def signed(body: bytes, count: int = 10, canonical: bytes = b"relaxed/relaxed", fields: bytes = b"") -> bytes:
    """Return a message whose signatures have the right hash of the body, so that their fields are read, too."""
    digest = base64.b64encode(hashlib.sha256(CANONICAL[canonical](body)).digest())
    signature = (
        b"DKIM-Signature: v=1; a=rsa-sha256; c=%b; d=example.com; s=s1; h=from:subject:x;\r\n"
        b"\tbh=%b; b=AAAA\r\n" % (canonical, digest)
    )
    return signature * count + fields + b"From: a@example.com\r\nSubject: Hi\r\n\r\n" + body


def _fill(pattern: bytes, size: int = SIZE) -> bytes:
    return (pattern * (size // len(pattern) + 1))[:size]


# By name: a function, so that only one message at a time is in memory.
MESSAGES: dict[str, Callable[[], bytes]] = {
    "empty lines": lambda: b"Subject: Hi\r\n\r\n" + _fill(b"\r\n"),
    "empty lines as html": lambda: _text(b"text/html", _fill(b"\r\n")),
    "short lines": lambda: b"Subject: Hi\r\n\r\n" + _fill(b"a\r\n"),
    "spaces": lambda: b"Subject: Hi\r\n\r\n" + _fill(b" "),
    "tags": lambda: _text(b"text/html", _fill(b"<p>")),
    "unclosed tags": lambda: _text(b"text/html", _fill(b"<")),
    "quotes": lambda: _text(b"text/plain", _fill(b"> > > > >\r\n")),
    "quoted replies": lambda: _text(b"text/plain", _fill(b"On Mon, Jan 5, 2026 at 10:00 AM A <a@b.c> wrote:\r\n")),
    "long quote intro": lambda: _text(b"text/plain", _fill(b"On On On wrote", 64 * 1024)),
    "a long quote intro with a date": lambda: _text(b"text/plain", b"2020/1/1 " + _fill(b"<@ ", 60 * 1024) + b":"),
    "quote intros with dates": lambda: _text(b"text/plain", _fill(b"2020/1/1 " + b"<@ " * 92 + b":\r\n", 64 * 1024)),
    "quote intros": lambda: _text(b"text/plain", _fill(b"Am " + b" schrieb :" * 29 + b"-\r\n", 64 * 1024)),
    "nested parts": lambda: _nested(250),
    "deep nesting": lambda: _nested(20_000),
    "many parts": lambda: _parts(100_000),
    "large parts": lambda: _parts(250, b"x" * 100_000),
    "dashed lines": lambda: _parts(2) + _fill(b"--b\r\n"),
    "almost boundaries": lambda: _parts(2) + _fill(b"--bb\r\n"),
    "fields": lambda: b"X: 1\r\n" * 100_000 + b"\r\nHi",
    "many fields of 25 MiB": lambda: _fill(b"X: 1\r\n") + b"\r\nHi",
    "one field": lambda: b"Subject: " + _fill(b"x ") + b"\r\n\r\nHi",
    "folds": lambda: b"Subject: " + _fill(b"\r\n x", MIB) + b"\r\n\r\nHi",
    "a parameter of 1 MB": lambda: _text(b'text/plain; name="' + b"x" * MIB + b'"', b"Hi"),
    "parameters": lambda: _text(b"text/plain" + b"; a=b" * 200_000, b"Hi"),
    "parameter sections": lambda: _text(b"text/plain" + b"".join(b"; a*%d*=b" % n for n in range(900)), b"Hi"),
    "open quotes": lambda: _text(b"text/plain" + b'; a="' * 800, b"Hi"),
    "a boundary of 1 MB": lambda: _text(b"multipart/mixed; boundary=" + b"x" * MIB, b"Hi"),
    "base64 of nothing": lambda: _text(b"application/pdf", _fill(b"=\r\n"), b"base64"),
    "base64 of zeros": lambda: _text(b"application/pdf", _fill(base64.b64encode(bytes(57)) + b"\r\n"), b"base64"),
    "base64 text": lambda: _text(b"text/plain", _fill(base64.b64encode(bytes(57)) + b"\r\n"), b"base64"),
    "quoted printable": lambda: _text(b"text/plain", _fill(b"=\r\n"), b"quoted-printable"),
    "quoted equals": lambda: _text(b"text/html", _fill(b"=3D"), b"quoted-printable"),
    "charset names": lambda: b"".join(
        [
            b"Content-Type: multipart/mixed; boundary=b\r\n\r\n",
            *(b"--b\r\nContent-Type: text/x; charset=cs%d\r\n\r\nHi\r\n" % number for number in range(1000)),
        ]
    ),
    "utf-16": lambda: _text(b"text/plain; charset=utf-16", _fill(b"\0a")),
    "a slow charset": lambda: _text(b"text/plain; charset=punycode", _fill(b"a-b")),
    "iso-2022": lambda: _text(b"text/plain; charset=iso-2022-jp", _fill(b"\x1b$B!!\x1b(B")),
    "encoded words": lambda: b"Subject: " + _fill(b"=?utf-8?q?=20?= ", MIB) + b"\r\n\r\nHi",
    "unfinished words": lambda: b"Subject: " + _fill(b"=?utf-8?q?", MIB) + b"\r\n\r\nHi",
    "addresses": lambda: b"To: " + _fill(b"a@b.example, ", MIB) + b"\r\n\r\nHi",
    "open comments": lambda: b"To: " + _fill(b"(", MIB) + b"\r\n\r\nHi",
    "open groups": lambda: b"To: " + _fill(b"a:;", MIB) + b"\r\n\r\nHi",
    "open brackets": lambda: b"To: " + _fill(b"<", MIB) + b"\r\n\r\nHi",
    "open brackets in encoded lists": lambda: (
        b"".join(b"%b: =?utf-8?q?x?= " % name + _fill(b"<", 15_000) + b"\r\n" for name in (b"To", b"Cc", b"Bcc") * 3)
        + b"\r\nHi"
    ),
    "separators": lambda: (
        b"".join(b"%b: =?utf-8?q?x?= " % name + _fill(b";", 15_000) + b"\r\n" for name in (b"To", b"Cc", b"Bcc") * 3)
        + b"\r\nHi"
    ),
    "open comments in brackets": lambda: b"From: " + _fill(b"<(", 120_000) + b"\r\n\r\nHi",
    "references": lambda: b"References: " + _fill(b"<a@b> ", MIB) + b"\r\n\r\nHi",
    "open references": lambda: b"References: " + _fill(b"<a@b ", MIB) + b"\r\n\r\nHi",
    "signed empty lines": lambda: signed(_fill(b"\r\n")),
    "signed spaces": lambda: signed(_fill(b" ")),
    "signed words": lambda: signed(_fill(b"a ")),
    "signed simply": lambda: signed(_fill(b"a\r\n"), canonical=b"simple/simple"),
    "a signature of spaces": lambda: b"DKIM-Signature: " + b" " * 100_000 + b"b=\r\n" + signed(b"Hi"),
    "a signed field of spaces": lambda: signed(b"Hi\r\n", fields=b"X: " + b" \t" * 50_000 + b"y\r\n"),
    "signed folds": lambda: signed(b"Hi\r\n", fields=b"X: " + b"\r\n  y" * 1_500 + b"\r\n"),
    "arc sets": lambda: (
        b"".join(
            b"ARC-Seal: i=%d; a=rsa-sha256; cv=pass; d=e.example; s=s; b=AAAA\r\n"
            b"ARC-Message-Signature: i=%d; a=rsa-sha256; d=e.example; s=s; h=from; bh=AAAA; b=AAAA\r\n"
            b"ARC-Authentication-Results: i=%d; x; arc=none\r\n" % (number, number, number)
            for number in range(1, 51)
        )
        + signed(_fill(b"a "))
    ),
    "rubbish": lambda: _fill(bytes(range(256)).replace(b"\r", b"").replace(b"\n", b"")),
    "NUL": lambda: _text(b"text/plain", bytes(SIZE)),
    "forged results": lambda: _fill(b"Authentication-Results: (((((((((\r\n", MIB) + b"\r\nHi",
}


def _padded(front: bytes, pattern: bytes, end: bytes = b"\r\n\r\nHi\r\n") -> Callable[[int], bytes]:
    return lambda size: front + _fill(pattern, size - len(front) - len(end)) + end


RESULTS = b"Authentication-Results: "
OURS = RESULTS + b"mx.demo.example; dmarc=pass\r\n"
# By name: a function of the size in bytes, for the time that a message takes from its reading to its forward.
SIZED: dict[str, Callable[[int], bytes]] = {
    # With our name in front, so that the header is searched.
    "a field with a CR at the bound of a header": lambda size: (
        (OURS + b"X: ").ljust(MIB - 1, b"a") + b"\r".ljust(size - MIB + 1, b"a")
    ),
    "a field that ends with CR": lambda size: (OURS + b"X: ").ljust(size - 1, b"a") + b"\r",
    "CR only": _padded(OURS + b"X: 1", b"\r"),
    "nested comments": _padded(RESULTS, b"("),
    "comments in comments": lambda size: RESULTS + b"(" * (size // 2) + b")" * (size // 2) + b" x\r\n\r\nHi",
    "an open comment of escapes": _padded(RESULTS + b"(", b"\\("),
    "an open quoted string": _padded(RESULTS + b'"', b"\\"),
    "forged results": _padded(b"", OURS),
    "foreign results": _padded(b"", RESULTS + b"a\r\n"),
    "results and other fields": _padded(b"", OURS + b"X: y\r\n"),
    "names of results": _padded(b"", b"\rAuthentication-Results"),
    "folds": _padded(OURS + b"X:", b"\r\n "),
    "folds of results": _padded(b"Authentication-Results", b"\r\n "),
    "lines of spaces in front": _padded(b" ", b"\r\n "),
    "a header without an end": _padded(OURS, b"X: y\r\n", b""),
    "spaces": _padded(OURS + b"X: ", b" "),
    "NUL": _padded(b"", b"\0"),
    "addresses": _padded(OURS + b"To: ", b"a@b.example, "),
    "a quoted name": _padded(OURS + b'To: "', b'\\"'),
    "encoded words": _padded(OURS + b"Subject: ", b"=?utf-8?q?"),
    "references": _padded(OURS + b"References: ", b"<a@b.example> "),
    "a long label": _padded(OURS + b"From: a@", "\u00e9".encode(), b".example\r\n\r\nHi"),
    "boundaries that nearly match": _padded(
        b"Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n", b"\r\n--bb"
    ),
    "deep multiparts": lambda size: _nested(size // 60)[:size],
    "base64 of garbage": _padded(b"Content-Type: a/b\r\nContent-Transfer-Encoding: base64\r\n\r\n", b"!=\n"),
    "angle brackets": _padded(b"Content-Type: text/html\r\n\r\n", b"<"),
    "references to images": _padded(
        b"Content-Type: multipart/related; boundary=b\r\n\r\n"
        + b"".join(b"--b\r\nContent-Type: image/png\r\nContent-ID: <%d>\r\n\r\nx\r\n" % number for number in range(200))
        + b"--b\r\nContent-Type: text/html\r\n\r\n",
        b"cid:1 cid:x ",
    ),
}
