"""Expressions and functions over text of strangers: time is linear in its length, whatever the text is."""

import ast
import importlib
import pkgutil
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from typing import Any

from core.delivery.bounces.classification import SmtpStage, normalized_text
from core.delivery.bounces.reasons import FailureReason
from core.delivery.bounces.replies import DeliveryOutcome, DeliveryStatus, Reply, safe_text
from core.delivery.bounces.signals import signal_of
from core.delivery.message.text import html_to_text
from core.delivery.receivers_file import built_in_receivers
from core.lib.email_addresses import normalize_search, parse_recipient, split_address_list
from core.lib.mail.charsets import decode_tolerantly, find_codec
from core.lib.mail.encoded_words import decode_words
from core.lib.mail.header_fields import decode_header, read_content_field, read_fields
from core.lib.mail.transfer_encodings import decode_base64, decode_quoted_printable
from core.lib.network.public_suffixes import organizational_domain
from domains.record_checks.dmarc import find_dmarc_error
from interfaces.inbound.inbox.html_check import check_html
from interfaces.inbound.reports.reading import read_report
from interfaces.submission.drafts import read_email
from interfaces.submission.errors import Refused
from receiving.inlining import with_fields
from receiving.reading.automatic import classify_message
from receiving.reading.budget import ProcessorBudget
from receiving.reading.message import read_received
from receiving.reading.quotes import find_reply, find_reply_in_html
from receiving.source import split_header, without_forged_results
from tests.rows import each
from tests.stack.stack import REPOSITORY

# Packages that read messages, replies of hosts, DNS records and requests. The HTML of emails has its own hostile tests
# (tests/core/delivery/message/test_html_hostile.py).
PACKAGES = (
    "receiving", "interfaces.inbound", "interfaces.submission", "interfaces.tracking", "core.lib",
    "core.delivery.bounces", "core.delivery.message", "core.delivery.receivers", "core.delivery.receivers_file",
    "core.delivery.transports", "core.api", "core.workspaces", "domains", "emails", "templates_app", "webhooks",
    "suppressions", "streams", "interfaces.compat", "console.provisioning",
)  # fmt: skip
# Used only with match or fullmatch: a search would begin anew at each character.
ANCHORED = {
    "core.api.pagination.POSITIVE_INTEGER",
    "core.delivery.message.html.HREF",
    "core.delivery.message.html.SKIPPED",
    "core.delivery.receivers.COUNTRY",
    "core.delivery.receivers.HOST_NAME",
    "core.delivery.receivers_file.MAILBOX_DOMAIN",
    "core.delivery.transports.transports_file.HOST_NAME",
    "domains.names.WRAPPED",
    "domains.record_checks.dmarc.URIS",
    "domains.record_checks.spf_evaluation.NAME",
    "domains.record_checks.tracking_host.CAA",
    "interfaces.inbound.reports.mime.MBOX_LINE",
    "interfaces.inbound.reports.patterns.ADDRESSED_FIELD",
    "interfaces.inbound.reports.patterns.AFTER_ADDRESS",
    "interfaces.inbound.reports.patterns.MESSAGE_FIELD",
    "interfaces.inbound.reports.patterns.SENDER_FIELD",
    "core.lib.email_addresses.QUOTED_STRING",
    "core.lib.mail.address_lists.LIST",
    "core.lib.mail.address_lists.MAILBOX",
    "core.lib.mail.address_lists.READABLE",
    "core.lib.mail.header_bounds.FIELD_START",
    "core.lib.mail.header_bounds.LINES_IN_FRONT",
    "core.lib.mail.header_bounds.PIECE",
    "core.lib.mail.header_fields.ANY_CHARSET",
    "core.lib.mail.header_fields.EXACT",
    "core.lib.mail.header_fields.FIELD",
    "core.lib.mail.header_fields.FIRST_WORD",
    "core.lib.mail.header_fields.KNOWN_CHARSET",
    "core.lib.mail.header_fields.PARAMETER",
    "core.lib.mail.header_fields.SEPARATORS",
    "core.lib.network.client_address.WITH_PORT",
    "core.lib.network.target_urls._URL",
    "receiving.reading.automatic.QUOTED_SUBJECT",
    "receiving.reading.introductions.AFTER_ADDRESS",
    "receiving.reading.introductions.DATED",
    "receiving.reading.introductions.GREETING",
    "receiving.reading.introductions.NAME",
    "receiving.reading.introductions.OF_DEVICES",
    "receiving.reading.introductions.OF_KNOWN_DEVICES",
    "receiving.reading.introductions.TIME_AFTER_ADDRESS",
    "receiving.source.AUTHSERV_ID",
    "templates_app.content.PROLOGUE",
}
# Texts of at most 512 characters (core.lib.email_addresses.MAX_LENGTH).
BOUNDED = {"core.lib.email_addresses.UNBRACKETED"}
# Calls of re without a compiled expression, by module: their texts are bounded, or the expression is that of a row.
UNCOMPILED = {
    "core.api.fields": 1,
    "core.delivery.message.unsubscribe_places": 1,
    "core.delivery.transports.tls_policies.sts_policy": 1,
    "webhooks.headers": 2,
    "core.delivery.bounces.classification": 1,
    "core.delivery.message.text": 2,
    "interfaces.inbound.reports.dsn": 1,
    "core.lib.email_addresses": 1,
    "receiving.source": 1,
    "interfaces.submission.content": 1,
}


def read_submitted(text: str) -> None:
    with suppress(Refused):
        read_email(text.encode(), recipients=())


def deferred_by(reply: Reply) -> DeliveryOutcome:
    return DeliveryOutcome(DeliveryStatus.DEFERRED, reply, FailureReason.UNDETERMINED)


def read_received_text(text: str) -> None:
    read_received(text.encode("latin-1"), envelope_from="", budget=ProcessorBudget())


# Functions with loops, and those that call libraries. Starts: in front of the repeated unit.
RESULTS = "Authentication-Results: "
FUNCTIONS: dict[str, tuple[Callable[[str], object], tuple[str, ...]]] = {
    "without_forged_results": (lambda text: without_forged_results(text.encode("latin-1")), ("X: ", RESULTS)),
    "with_fields": (lambda text: with_fields(text.encode("latin-1"), [], without={"x-spam-"}), ("X-Spam-A: ",)),
    "split_header": (lambda text: split_header(text.encode("latin-1")), ("X: ",)),
    "read_fields": (lambda text: [field.decoded for field in read_fields(text, limit=400)], ("X: ",)),
    "decode_header": (
        lambda text: decode_header(text.encode("latin-1")),
        ("Subject: \xff", "From: \xff", "Content-Type: a/b; charset=gb18030\nSubject: \x81", "Content-Type: a/b\xff "),
    ),
    "read_content_field": (
        read_content_field,
        ("", "a/b ", "a/b; ", 'a/b; a="', "a/b; a*0*=", "a/b; name=a ", "(", "a/b; a=b ("),
    ),
    "decode_base64": (lambda text: decode_base64(text.encode("latin-1")), ("QQ==", "A=")),
    "decode_quoted_printable": (lambda text: decode_quoted_printable(text.encode("latin-1")), ("= ",)),
    "read_message": (
        read_received_text,
        ("", "From: ", "Content-Type: multipart/mixed\n\n", "Content-Type: text/html\n\n"),
    ),
    "decode_words": (decode_words, ("", "=?utf-8?q?", "=?utf-8?b?", "=?gb2312?q?a?=20")),
    **{
        f"decode_tolerantly {charset}": (
            lambda text, charset=charset: decode_tolerantly(text.encode("latin-1"), charset, kind="text/html"),
            ("\x1b$B", "\xff", "\xad\xa1", "+A", "<meta ", "charset="),
        )
        for charset in ("", "iso-2022-jp", "euc-jp", "gb18030", "utf-7", "iso-8859-1")
    },
    "find_codec": (find_codec, ("", "cp", "charset=")),
    "read_submitted": (read_submitted, ("To: ", "To: a@b.example (", "X: ")),
    "split_address_list": (split_address_list, ("", '"')),
    "parse_recipient": (parse_recipient, ("", "a@", "a <")),
    "normalize_search": (normalize_search, ("a@\u00e9",)),
    "organizational_domain": (organizational_domain, ("a.",)),
    "receiver_of_reply": (built_in_receivers().receiver_of_reply, ("", "mimecast.")),
    "signal_of": (
        lambda text: signal_of(deferred_by(Reply(421, text)), stage=SmtpStage.DOT),
        ("", "messages they can ", "sender has exceeded the limit "),
    ),
    "find_dmarc_error": (
        lambda text: find_dmarc_error([text]),
        ("v=DMARC1; p=none; ", "v=DMARC1; p=none; rua=mailto:"),
    ),
    "html_to_text": (html_to_text.__wrapped__, ("", "<a ", "<style>", "<a href=x>")),
    "check_html": (lambda text: check_html(text, has_text=True), ("", "<img ", "<a href=")),
    "find_reply": (find_reply, ("", "On ", "2020/1/1 ", "Hi\n\n", "> ", "From: a@b.example\n")),
    "find_reply_in_html": (lambda text: find_reply_in_html(text, ""), ("", "<blockquote type=cite>", "<p class=x>")),
    "classify_message": (
        lambda text: classify_message(lambda _: [text], subject=text, envelope_from="a@b.example"),
        ("", "auto: ", "auto-replied (", "Ada "),
    ),
    "read_report": (lambda text: read_report(text.encode("latin-1")), ("Subject: ", "From: mailer-daemon@a\n\n")),
    "normalized_text": (normalized_text, ("550 ",)),
    "safe_text": (safe_text, ("550 ",)),
}
LENGTH = 500
FUNCTION_LENGTH = 4_000
UNITS = [
    *" \t\r\n\"'\\()<>@.,;:=?*-_/&#[]0aA\0%{",
    "\r\n ",
    "a ",
    "a@",
    "a.",
    "1.",
    "=?",
    "a=b;",
    "<a ",
    '\\"',
    "</",
    "<!--",
]


def modules() -> Iterator[Any]:
    for package in PACKAGES:
        root = importlib.import_module(package)
        yield root
        for found in pkgutil.walk_packages(getattr(root, "__path__", ()), f"{package}."):
            if not {"migrations", "management"} & {*found.name.split(".")}:
                yield importlib.import_module(found.name)


def expressions_in(name: str, value: Any) -> Iterator[tuple[str, "re.Pattern[Any]"]]:
    """Yield expressions, also those in tables."""
    if isinstance(value, re.Pattern):
        yield name, value
    elif isinstance(value, tuple | list):
        for number, entry in enumerate(value):
            yield from expressions_in(f"{name}[{number}]", entry)
    elif isinstance(value, dict):
        for key, entry in value.items():
            yield from expressions_in(f"{name}[{key}]", entry)
    elif isinstance(pattern := getattr(value, "pattern", None), re.Pattern):
        yield name, pattern


@cache
def expressions() -> "dict[re.Pattern[Any], str]":
    """Return all expressions of the packages with the name of the first one that is equal."""
    found: dict[re.Pattern[Any], str] = {}
    for module in modules():
        for name, value in vars(module).items():
            for full_name, pattern in expressions_in(f"{module.__name__}.{name}", value):
                found.setdefault(pattern, full_name)
    return found


def hostile_texts(pattern: "re.Pattern[Any]") -> Iterator[tuple[str, str]]:
    """Yield the start and the repeated unit of texts that nearly match: characters, and words of the expression."""
    source = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    words = [*dict.fromkeys(re.findall(r"[A-Za-z][A-Za-z-]+[:=]?", source))][:8]
    yield from (("", unit) for unit in [*UNITS, *words, *(f"{word} " for word in words)])
    yield from (
        (start, unit) for start in ("a", '"', "<", "(", *words[:3]) for unit in (" ", "a", "a ", ".", "\\", "(")
    )


def seconds(pattern: "re.Pattern[Any]", text: str, *, is_anchored: bool) -> float:
    given: Any = text.encode("latin-1") if isinstance(pattern.pattern, bytes) else text
    began = time.thread_time()
    if is_anchored:
        pattern.match(given)
        pattern.fullmatch(given)
    else:
        all(pattern.finditer(given))
    return time.thread_time() - began


def is_linear(measure: Callable[[str], float], start: str, unit: str, *, length: int = LENGTH) -> bool:
    """Return whether four times a text takes about four times as long; True if that is too short to matter."""
    short, long = (start + unit * (count // len(unit)) for count in (length, 4 * length))
    if measure(long) < 0.000_002 * length:
        return True
    # Interleaved, so that other load slows down both.
    times = [[measure(text) for text in (short, long)] for _ in range(3)]
    return min(time for _, time in times) < 6.7 * min(time for time, _ in times) + 0.001


@each("package", PACKAGES)
def test_an_expression_takes_linear_time(package):
    slow = {
        (name, start, unit)
        for pattern, name in expressions().items()
        if name.startswith(f"{package}.") and name not in BOUNDED
        for start, unit in hostile_texts(pattern)
        if not is_linear(partial(seconds, pattern, is_anchored=name in ANCHORED), start, unit)
    }
    assert slow == set()


@each("name", FUNCTIONS)
def test_a_function_takes_linear_time(name):
    function, starts = FUNCTIONS[name]

    def measure(text: str) -> float:
        began = time.thread_time()
        with suppress(ValueError):
            function(text)
        return time.thread_time() - began

    slow = {
        (start, unit)
        for start in starts
        for unit in (
            *UNITS,
            "On wrote:",
            "> ",
            "On 5 a@b.example wrote:\n",
            "From: a\n",
            "<blockquote type=cite>a</blockquote>",
            "\u00e9",
            "cid:a ",
            RESULTS,
            "--b\n",
        )
        if not is_linear(measure, start, unit, length=FUNCTION_LENGTH)
    }
    assert slow == set()


def test_no_expression_repeats_something_more_often_than_the_texts_show():
    least = {name: re.findall(r"(?<!\\)\{(\d+)", str(pattern.pattern)) for pattern, name in expressions().items()}
    assert {name: counts for name, counts in least.items() if any(int(count) > LENGTH // 5 for count in counts)} == {}


def test_the_exceptions_exist():
    assert (ANCHORED | BOUNDED) - {*expressions().values()} == set()


def test_expressions_are_compiled_where_this_test_finds_them():
    found = {}
    for module in modules():
        tree = ast.parse((REPOSITORY / module.__spec__.origin).read_text("utf-8"))
        calls = [ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)]
        count = sum(call.startswith("re.") and call not in {"re.compile", "re.escape"} for call in calls)
        if count:
            found[module.__name__] = count
    assert found == UNCOMPILED


def test_no_group_is_repeated_possessively():
    """Python before 3.11.5 may match such a group in part (docs/decisions/0025); an atomic group is right."""
    files = subprocess.run(["git", "ls-files", "*.py"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    product = [name for name in files.stdout.split() if not name.startswith("tests/")]
    repeated = re.compile(r"(?<!\\)\)[*+?]\+")
    assert [name for name in product if repeated.search((REPOSITORY / name).read_text("utf-8"))] == []
