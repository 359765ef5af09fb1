"""Options in headers: the fields that they set, and a refusal of everything that is not one."""

from datetime import UTC, datetime, time, timedelta

import pytest

from core.lib.email_addresses import Address
from interfaces.submission.drafts import read_email
from interfaces.submission.errors import InvalidHeader
from tests.rows import each

# The same in every process of a parallel test run.
LATER = datetime.combine(datetime.now(UTC) + timedelta(days=2), time.min, UTC)


def submitted(*lines: str):
    head = ["From: hi@alice.example", "To: ada@example.com", "Subject: Hello", *lines]
    return read_email("\r\n".join([*head, "", "Hi"]).encode(), recipients=[Address("", "ada@example.com")])


@each(("line", "field", "value"), [
    ("X-Postrider-Tags: welcome, shop", "tags", ("welcome", "shop")),
    ('X-Postrider-Metadata: {"order": 17}', "metadata", {"order": 17}),
    ("X-Postrider-Template: welcome", "template", "welcome"),
    ('X-Postrider-Template-Data: {"name":\r\n "Ada"}', "template_data", {"name": "Ada"}),
    (f"X-Postrider-Scheduled-For: {LATER.isoformat()}", "scheduled_for", LATER),
    ("x-postrider-track-opens: false", "track_opens", False),
    ("X-Postrider-Track-Clicks: FALSE", "track_clicks", False),
    ("X-PM-Tag: welcome, shop", "tags", ("welcome, shop",)),
    ("X-PM-Metadata-order-id: 17", "metadata", {"order-id": "17"}),
    ("X-PM-TrackOpens: false", "track_opens", False),
    ("X-PM-TrackLinks: None", "track_clicks", False),
    ("X-PM-TrackLinks: HtmlAndText", "track_clicks", True),
    ("X-PM-Message-Stream: outbound", "stream", "main"),
    ("X-PM-Message-Stream: broadcast", "stream", "broadcast"),
    ("X-Postrider-Stream: news", "stream", "news"),
    ("X-Postrider-Locale: de_at", "locale", "de-AT"),
    ("X-Postrider-TLS: Required", "tls", "required"),
    ("X-Postrider-TLS: opportunistic", "tls", "opportunistic"),
    ("X-Postrider-Deliver-Within: 10m", "deliver_within", 600),
    ("X-Postrider-Deliver-Within: 90", "deliver_within", 90),
    ("X-Postrider-Deliver-Within: 45 S", "deliver_within", 45),
    ("X-Postrider-Deliver-Within: 7d", "deliver_within", 604_800),
])  # fmt: skip
def test_an_option_sets_its_field_and_is_removed(line, field, value):
    draft = submitted(line).draft
    assert getattr(draft, field) == value
    assert draft.headers == {}


@each("name", ["X-Postrider-Idempotency-Key", "Idempotency-Key", "Resend-Idempotency-Key"])
def test_an_idempotency_key_has_several_names(name):
    assert submitted(f"{name}: abc").key == "abc"


def test_without_options_the_defaults_of_the_api_hold():
    email = submitted()
    assert (email.key, email.draft.stream) == (None, None)
    # As the stream has it.
    assert (email.draft.track_opens, email.draft.track_clicks) == (None, None)
    assert (email.draft.tags, email.draft.metadata, email.draft.scheduled_for) == ((), None, None)


@each("line", [
    "X-Postrider-Scheduled-For: tomorrow", "X-Postrider-Scheduled-For: 2020-01-01T00:00:00Z",
    "X-Postrider-Metadata: order=17", "X-Postrider-Metadata: [1]", 'X-Postrider-Metadata: {"a": 1, "a": 2}',
    "X-Postrider-Template-Data: {", "X-Postrider-Track-Opens: maybe", "X-Postrider-Tags: a,,b",
    "X-Postrider-Tags: " + "x" * 256, "X-Postrider-Template: " + "x" * 101,
    "X-Postrider-Sheduled-For: 2030-01-01T00:00:00Z", "X-Postrider-: 1", "X-PM-TrackLinks: TextOnly",
    "X-Postrider-Deliver-Within: 29s", "X-Postrider-Deliver-Within: 169h", "X-Postrider-Deliver-Within: 1.5m",
    "X-Postrider-TLS: yes",
    "X-Postrider-Deliver-Within: soon", "X-Postrider-Stream: " + "x" * 41, "X-PM-Bounce-Type: hard",
    "X-PM-Metadata-: 1",
])  # fmt: skip
def test_an_invalid_or_unknown_option_is_refused_by_name(line):
    with pytest.raises(InvalidHeader, match=line.partition(":")[0]) as refusal:
        submitted(line)
    assert str(refusal.value).startswith("550 5.6.0 ")


def test_an_option_given_twice_is_refused():
    with pytest.raises(InvalidHeader, match="X-Postrider-Tags sets it"):
        submitted("X-Postrider-Tags: a", "X-PM-Tag: b")


def test_more_metadata_than_the_api_allows_is_refused():
    with pytest.raises(InvalidHeader, match="X-PM-Metadata-a"):
        submitted(f"X-PM-Metadata-a: {'x' * 10_000}")


@each(("by", "header", "seconds"), [
    (None, None, None), (600, None, 600), (None, "1m", 60), (600, "1m", 60), (40, "1m", 40),
])  # fmt: skip
def test_the_shorter_time_of_envelope_and_header_counts(by, header, seconds):
    lines = [f"X-Postrider-Deliver-Within: {header}\r\n"] if header else []
    source = "".join(["From: hi@alice.example\r\n", *lines, "\r\nHi"])
    submitted = read_email(source.encode(), recipients=[Address("", "ada@example.com")], deliver_within=by)
    assert submitted.draft.deliver_within == seconds
