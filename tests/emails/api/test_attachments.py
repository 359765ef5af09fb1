"""Attachments: accepted requests, refused ones, and the messages that arrive."""

import base64
import collections
import email
import gc
import json
import os
import tracemalloc
from email import policy
from email.message import EmailMessage

import pytest
from django.test import RequestFactory
from hypothesis import given
from hypothesis import strategies as st

from core.delivery.message.compose import File, compose
from core.lib.email_addresses import FORBIDDEN
from emails.accept.insertion import NewEmail, SharedFields, insert_attachments
from emails.api.views import EmailViewSet
from emails.models import Attachment, Content, Email
from emails.sending.jobs import MEMORY_BYTES, load_jobs
from emails.sending.outgoing_messages import build_message
from templates_app.content import RenderedContent
from tests.conftest import Api, code_of, field_codes, mail
from tests.core.delivery.message.test_message import outgoing_message
from tests.core.lib.worker.outages import full_disk
from tests.emails.builders import claim_entries, nothing_was_written
from tests.rows import each

LIMIT = 10_485_760
PNG = b"\x89PNG\r\n\x1a\n\x00\xff" * 20


def file(name: str = "a.txt", data: bytes = b"A", **fields) -> dict:
    return {"filename": name, "content": base64.b64encode(data).decode(), **fields}


def send(api: Api, *files: dict, **fields):
    return api.post("/emails/send", mail(attachments=list(files), **fields))


def messages_by_address() -> dict[str, bytes]:
    """Return the message sent to each due address."""
    jobs = load_jobs(claim_entries(100), memory_bytes=MEMORY_BYTES)
    return {job.address: build_message(job).to_bytes() for job in jobs}


def parse_message(source: bytes) -> EmailMessage:
    return email.message_from_bytes(source, policy=policy.default)


def received_message() -> EmailMessage:
    (source,) = messages_by_address().values()
    return parse_message(source)


def shape(part: EmailMessage) -> str | tuple:
    """Return the content type of a part, with those of nested parts."""
    if not part.is_multipart():
        return part.get_content_type()
    return (part.get_content_subtype(), *map(shape, part.iter_parts()))


def attachments_of(message: EmailMessage) -> list[tuple[str, str, bytes]]:
    """Return filename, type and bytes of each part with a filename."""
    named = [part for part in message.walk() if part.get_filename() is not None]
    return [(part.get_filename(), part.get_content_type(), part.get_payload(decode=True)) for part in named]


INVITATION = {"name": "invite.ics", "data": b"BEGIN:VCALENDAR", "contentType": "text/calendar; method=REQUEST"}


@pytest.mark.django_db
class TestAlternatives:
    def test_an_invitation_stands_beside_text_and_html(self, api: Api):
        files = [file(**INVITATION, alternative=True), file(**INVITATION, alternative=False)]
        assert send(api, *files, text="Hi", html="<p>Hi").status_code == 202
        message = received_message()
        alternatives = ("alternative", "text/plain", "text/html", "text/calendar")
        assert shape(message) == ("mixed", alternatives, "text/calendar")
        invitation = message.get_payload(0).get_payload(2)
        assert (invitation["Content-Type"].params["method"], invitation["Content-Disposition"]) == ("REQUEST", None)

    @each("fields", [
        {"contentType": "text/html"}, {"contentType": "Text/Plain; charset=utf-8"}, {"contentType": "application/ics"},
        {"contentType": None}, {"contentId": "a"},
    ])  # fmt: skip
    def test_a_file_that_cannot_be_an_alternative_is_refused(self, api: Api, fields):
        response = send(api, file(**{**INVITATION, "name": "a.txt", **fields}, alternative=True))
        assert field_codes(response) == {"attachments[0].alternative": "invalid_alternative"}
        assert nothing_was_written()

    def test_the_type_of_a_calendar_names_its_method(self, api: Api):
        """RFC 6047, section 2.4; without it, mail programs show a file."""
        head, request = b"BEGIN:VCALENDAR\r\nVERSION:2.0\r\n", b"METHOD:REQUEST\r\n"
        long = f'text/calendar; x="{"x" * 90}"; y="{"y" * 90}"; z="{"z" * 35}"'
        rows = [
            ({}, head + request, "text/calendar; method=REQUEST"),
            ({}, (head + b"method:cancel\n").replace(b"\r", b""), "text/calendar; method=CANCEL"),
            ({"contentType": "Text/Calendar; x=y"}, head + request, "Text/Calendar; x=y; method=REQUEST"),
            # The sender's own.
            ({"contentType": "text/calendar; METHOD=reply"}, head + request, "text/calendar; METHOD=reply"),
            ({}, head, "text/calendar"),
            ({}, head + b"X-METHOD:REQUEST\r\nMETHOD:A B\r\n", "text/calendar"),
            ({}, head + b"X" * 8192 + b"\r\n" + request, "text/calendar"),
            ({"contentType": "text/calendarish"}, head + request, "text/calendarish"),
            # No room for it.
            ({"contentType": long}, head + request, long),
        ]
        for fields, data, expected in rows:
            assert send(api, file("a.ics", data, **fields, alternative=True)).status_code == 202
            stored = Attachment.objects.order_by("pk").last()
            assert stored.content_type == expected, (fields, data[:80])
        # A file that people save keeps the type that it was given.
        send(api, file("a.ics", head + request))
        assert Attachment.objects.order_by("pk").last().content_type == "text/calendar"


@pytest.mark.django_db
class TestLimits:
    def test_10_files_pass_in_their_order_and_11_do_not(self, api: Api):
        names = [f"{number}.txt" for number in range(10)]
        assert send(api, *map(file, names)).status_code == 202
        assert [name for name, *_ in attachments_of(received_message())] == names
        response = send(api, *[file()] * 11)
        assert code_of(response) == (422, "too_many_attachments")
        assert response.json()["limit"] == 10
        assert Email.objects.count() == 1

    @each("sizes", [(LIMIT,), (LIMIT - 1, 1)])
    def test_10485760_bytes_pass_and_one_more_does_not(self, api: Api, sizes):
        files = [file(f"{number}.bin", bytes(size)) for number, size in enumerate(sizes)]
        response = send(api, *files)
        assert response.status_code == 202
        listed = api.get(f"/emails/{response.json()['id']}").json()["attachments"]
        assert [attachment["size"] for attachment in listed] == list(sizes)
        files[0] = file("0.bin", bytes(sizes[0] + 1))
        response = send(api, *files)
        assert code_of(response) == (413, "attachments_too_large")
        assert response.json()["limit"] == LIMIT
        assert Email.objects.count() == 1

    def test_oversized_content_is_refused_before_decoding(self, api: Api):
        response = send(api, {"filename": "a.bin", "content": "!" * (LIMIT * 4 // 3 + 100)})
        assert code_of(response) == (413, "attachments_too_large")
        assert nothing_was_written()

    @each("given_as", [[], None])
    def test_empty_and_null_mean_none(self, api: Api, given_as):
        response = api.post("/emails/send", mail() | {"attachments": given_as})
        assert response.status_code == 202
        assert api.get(f"/emails/{response.json()['id']}").json()["attachments"] == []


@pytest.mark.django_db
class TestContent:
    def test_a_full_disk_is_temporary(self, api: Api):
        with full_disk("emails_attachment"):
            response = api.post("/emails/send", mail(attachments=[file(data=b"x")]))
        assert response.status_code == 503
        assert not Email.objects.exists()

    @each("data", [b"", b"A", b"AB", b"ABC", bytes(range(256)), b"\r\n.\r\nFrom \n"])
    def test_bytes_arrive_unchanged(self, api: Api, data):
        assert send(api, file("a.bin", data)).status_code == 202
        assert attachments_of(received_message()) == [("a.bin", "application/octet-stream", data)]
        assert Attachment.objects.get().size == len(data)

    @each("content", [
        "QUJD\n", "QU JD", " QUJD", "QUJD\r\nQUJD", "QQ", "QQ=", "QUJ", "Q", "QQ===", "QQ==QQ==", "=QQ=", "====",
        "-_-_", "QUJD!", "QÜJD", "data:text/plain;base64,QUJD", "\u2028QUJD",
    ])  # fmt: skip
    def test_invalid_base64_is_refused_with_its_field(self, api: Api, content):
        response = send(api, file(), file(), {"filename": "a.txt", "content": content})
        assert field_codes(response) == {"attachments[2].content": "invalid_base64"}
        assert nothing_was_written()

    @each(("item", "field", "code"), [
        ({"filename": "a.txt"}, "attachments[0].content", "required"),
        ({"filename": "a.txt", "content": None}, "attachments[0].content", "required"),
        ({"filename": "a.txt", "content": 7}, "attachments[0].content", "invalid"),
        ({"filename": "a.txt", "content": ["QQ=="]}, "attachments[0].content", "invalid"),
        ({"content": "QQ=="}, "attachments[0].filename", "required"),
        ({"filename": "a.txt", "content": "QQ==", "path": "/etc/passwd"}, "attachments[0].path", "unknown_field"),
        ("QQ==", "attachments[0]", "invalid_type"),
    ])  # fmt: skip
    def test_a_malformed_attachment_is_refused_with_its_field(self, api: Api, item, field, code):
        assert field_codes(send(api, item)) == {field: code}
        assert nothing_was_written()

    @each("files", [{}, "a.txt", 7, file()])
    def test_a_value_that_is_not_a_list_is_refused(self, api: Api, files):
        response = api.post("/emails/send", mail(attachments=files))
        assert field_codes(response) == {"attachments": "invalid_type"}

    def test_all_errors_are_reported_together(self, api: Api):
        response = send(api, {"filename": "../a", "content": "Q"}, file(), {"filename": "", "content": "QQ==", "x": 1})
        assert field_codes(response) == {
            "attachments[0].filename": "unsafe",
            "attachments[0].content": "invalid_base64",
            "attachments[2].filename": "blank",
            "attachments[2].x": "unknown_field",
        }

    def test_the_detail_lists_names_types_and_sizes_without_the_bytes(self, api: Api):
        email_id = send(api, file("b.pdf", b"12345"), file("a.png", PNG, contentId="logo")).json()["id"]
        assert api.get(f"/emails/{email_id}").json()["attachments"] == [
            {"filename": "b.pdf", "contentType": "application/pdf", "size": 5},
            {"filename": "a.png", "contentType": "image/png", "size": len(PNG)},
        ]


NAMES = [
    "report.pdf", "no extension", ".profile", "a..b", "...x", "Übersicht größer.pdf", "请款单 二〇二六.xlsx",
    "رسالة.txt", "party 🎉👩‍👩‍👧.png", 'say "hi".txt', "it's 100% = a;b, c'd*.txt", "=?utf-8?q?a?=.txt",
    "utf-8''a%20b.txt", "percent%41.txt", "CON", "a" * 251 + ".txt", "é" * 255, "文" * 255, "😀" * 255,
]  # fmt: skip


@pytest.mark.django_db
class TestNames:
    @each("name", NAMES)
    def test_a_filename_arrives_unchanged_even_twice(self, api: Api, name):
        response = send(api, file(name, b"A"), file(name, b"B"))
        assert response.status_code == 202, response.content
        assert api.get(f"/emails/{response.json()['id']}").json()["attachments"][0]["filename"] == name
        (source,) = messages_by_address().values()
        found = attachments_of(parse_message(source))
        assert [(filename, data) for filename, _, data in found] == [(name, b"A"), (name, b"B")]
        assert max(map(len, source.split(b"\r\n"))) <= 998
        assert source.isascii()

    @each("name", [
        "/etc/passwd", "../a.txt", "a/b.txt", "..\\a.txt", "C:\\a.txt", ".", "..", "...", ". .", " ", "a\nb.txt",
        "a\r\nContent-Type: text/html", "a\tb", "a\x7f", "a\x85b", "a\u2028b", "a\u2029b", "txt.\u202eexe", "a\u2066b",
    ])  # fmt: skip
    def test_a_name_with_a_path_a_control_character_or_only_dots_is_refused(self, api: Api, name):
        response = send(api, file(), file(name))
        assert field_codes(response) == {"attachments[1].filename": "unsafe"}
        assert nothing_was_written()

    @each("character", ["a", "文", "😀"])
    def test_255_characters_pass_and_256_do_not(self, api: Api, character):
        assert send(api, file(character * 255)).status_code == 202
        assert field_codes(send(api, file(character * 256))) == {"attachments[0].filename": "max_length"}

    @given(
        st.text(min_size=1, max_size=255).filter(
            lambda name: (
                not FORBIDDEN.search(name)
                and not set(name) & {"/", "\\"}
                and name == name.strip()
                # The email parser strips these as quotes, although the name is percent-encoded (RFC 2231).
                and (name[0], name[-1]) not in {("<", ">"), ('"', '"')}
            )
        ),
        st.binary(max_size=200),
    )
    def test_any_filename_is_parsed_back_unchanged(self, name, data):
        message = parse_message(compose(outgoing_message(files=(File(name, "application/pdf", data),))))
        assert attachments_of(message) == [(name, "application/pdf", data)]
        assert shape(message) == ("mixed", ("alternative", "text/plain", "text/html"), "application/pdf")


@pytest.mark.django_db
class TestTypes:
    @each(("given_as", "arrives"), [
        ("application/pdf", "application/pdf"), ("Image/PNG", "image/png"),
        ("text/calendar; method=REQUEST; charset=utf-8", "text/calendar"), ('text/csv;charset="utf-8"', "text/csv"),
        ("text/plain ;  format=flowed", "text/plain"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", None),
        ("application/vnd.api+json", None), ("x-custom/x-type", None), ("a/" + "b" * 100, None),
    ])  # fmt: skip
    def test_any_type_that_parses_is_kept(self, api: Api, given_as, arrives):
        email_id = send(api, file("a.bin", contentType=given_as)).json()["id"]
        assert api.get(f"/emails/{email_id}").json()["attachments"][0]["contentType"] == given_as
        (found,) = attachments_of(received_message())
        assert found[1] == (arrives or given_as)

    def test_content_type_parameters_arrive(self, api: Api):
        send(api, file("a.ics", b"BEGIN:VCALENDAR", contentType='text/calendar; method=REQUEST; x="a b"'))
        part = next(part for part in received_message().walk() if part.get_filename())
        assert dict(part["Content-Type"].params) == {"method": "REQUEST", "x": "a b"}

    @each("content_type", [
        None, "", "pdf", "application/", "/pdf", "a/b/c", "application/pdf; x", "text plain", "text/plain; x=é",
        'text/plain; name="😀"', "a/" + "b" * 101, "text/plain; x=" + "y" * 101,
    ])  # fmt: skip
    def test_an_invalid_type_is_replaced_by_a_guess_from_the_filename(self, api: Api, content_type):
        guesses = {"a.pdf": "application/pdf", "a.PNG": "image/png", "a": "application/octet-stream"}
        response = send(api, *[file(name) | {"contentType": content_type} for name in guesses])
        assert response.status_code == 202, response.content
        assert {name: guess for name, guess, _ in attachments_of(received_message())} == guesses

    @each(
        "content_type",
        ["image/png\r\nBcc: eve@example.com", "image/png\n", "image/\x7fpng", "image/png\u2028", "\u202egnp/egami"],
    )
    def test_a_type_with_a_control_character_is_refused(self, api: Api, content_type):
        response = send(api, file(contentType=content_type))
        assert field_codes(response) == {"attachments[0].contentType": "control"}
        assert nothing_was_written()

    @each("content_type", ["multipart/mixed; boundary=x", "message/delivery-status", "Message/Partial"])
    def test_a_structural_type_becomes_octet_stream(self, api: Api, content_type):
        data = b"Subject: inner\r\n\r\n--x\r\n\r\nbody"
        send(api, file("a.dat", data, contentType=content_type))
        message = received_message()
        assert attachments_of(message) == [("a.dat", "application/octet-stream", data)]
        assert shape(message) == ("mixed", ("alternative", "text/plain", "text/html"), "application/octet-stream")

    @each("content_type", [None, "message/rfc822", "Message/RFC822; charset=utf-8"])
    def test_an_attached_message_keeps_its_type(self, api: Api, content_type):
        send(api, file("mail.eml", b"Subject: x\r\n\r\nHi", contentType=content_type))
        (attached,) = received_message().iter_attachments()
        assert (attached.get_content_type(), attached.get_filename()) == ("message/rfc822", "mail.eml")
        assert attached.get_content()["Subject"] == "x"


@pytest.mark.django_db
class TestStructure:
    def test_parts_are_nested_as_mail_clients_expect(self, api: Api):
        send(
            api,
            file("logo.png", PNG, contentId="logo@alice.example"),
            file("terms.pdf", b"%PDF"),
            html='<p>Hi <img src="cid:logo@alice.example"></p>',
            text="Hi",
        )
        message = received_message()
        related = ("related", ("alternative", "text/plain", "text/html"), "image/png")
        assert shape(message) == ("mixed", related, "application/pdf")
        inline, attached = (part for part in message.walk() if part.get_filename())
        assert (inline["Content-ID"], inline.get_content_disposition()) == ("<logo@alice.example>", "inline")
        assert (attached["Content-ID"], attached.get_content_disposition()) == (None, "attachment")
        assert inline.get_payload(decode=True) == PNG
        assert message.get_body(("html",)).get_content().startswith('<p>Hi <img src="cid:logo@alice.example"></p>')
        assert message.get_body(("plain",)).get_content().splitlines()[0] == "Hi"

    @each(("files", "fields", "expected"), [
        ([], {}, ("alternative", "text/plain", "text/html")),
        ([], {"html": None, "text": "Hi"}, "text/plain"),
        ([file()], {"html": None, "text": "Hi"}, ("mixed", "text/plain", "text/plain")),
        ([file()], {}, ("mixed", ("alternative", "text/plain", "text/html"), "text/plain")),
        (
            [file("a.png", contentId="a"), file("b.png", contentId="b")],
            {},
            ("related", ("alternative", "text/plain", "text/html"), "image/png", "image/png"),
        ),
    ])  # fmt: skip
    def test_unneeded_multiparts_are_omitted(self, api: Api, files, fields, expected):
        assert send(api, *files, **fields).status_code == 202
        assert shape(received_message()) == expected

    def test_every_recipient_gets_the_attachments_and_no_message_shows_the_bcc(self, api: Api):
        send(api, file(), to=["a@example.com"], cc=["c@example.com"], bcc=["hidden@example.com"])
        found = messages_by_address()
        assert found.keys() == {"a@example.com", "c@example.com", "hidden@example.com"}
        assert len({parse_message(source)["Message-ID"] for source in found.values()}) == 3
        for source in found.values():
            message = parse_message(source)
            assert (message["To"], message["Cc"], message["Bcc"]) == ("a@example.com", "c@example.com", None)
            assert b"hidden@example.com" not in source
            assert attachments_of(message) == [("a.txt", "text/plain", b"A")]

    def test_content_ids_arrive(self, api: Api):
        ids = ["logo", "a.b-c_d@alice.example", "!#$%&'*+/=?^_`{|}~", "x" * 255]
        assert send(api, *[file("a.png", contentId=content_id) for content_id in ids]).status_code == 202
        inline = [part for part in received_message().walk() if part.get_filename()]
        assert [part["Content-ID"].strip() for part in inline] == [f"<{content_id}>" for content_id in ids]

    @each("content_id", ["<logo>", "a b", "a\r\nX: y", "é", "a>b", "", "x" * 256, 7])
    def test_an_invalid_content_id_is_refused(self, api: Api, content_id):
        response = send(api, file("a.png", contentId=content_id))
        assert field_codes(response).keys() == {"attachments[0].contentId"}
        assert nothing_was_written()


class TestMemory:
    """Python's own memory; tests/stack/test_attachments.py measures that of the processes."""

    SIZE = 5_000_000

    def traced(self, act) -> tuple[int, int]:
        """Return the memory that remains and the peak, without the garbage collector."""
        gc.collect()
        gc.disable()
        tracemalloc.start()
        try:
            act()
            return tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
            gc.enable()

    def test_a_file_reaches_the_database_without_a_second_copy_in_text_form(self, api: Api):
        content = Content.objects.create(html="", text="")
        data = os.urandom(self.SIZE)
        shared = SharedFields(sender="", from_domain="", reply_to=None, content_id=content.id)
        files = (File("a.bin", "application/octet-stream", data),)
        new = NewEmail(shared, [], [], [], "", None, [], rendered=RenderedContent("", "", ""), files=files)
        _, peak = self.traced(lambda: insert_attachments([new]))
        assert peak < 1.5 * self.SIZE
        assert bytes(Attachment.objects.get().data) == data

    def test_the_memory_of_a_body_does_not_wait_for_the_garbage_collector(self, api: Api):
        body = json.dumps(mail(attachments=[file(data=os.urandom(self.SIZE))], to="nobody")).encode()
        # Created before: requests of tests have a copy of the body.
        path, view = "/v1/emails/send", EmailViewSet.as_view({"post": "send"})
        requests = [RequestFactory().post(path, body, "application/json", headers=api.headers) for _ in range(4)]
        assert view(requests[0]).status_code == 422
        remaining, _ = self.traced(lambda: collections.deque(map(view, requests[1:]), maxlen=0))
        assert remaining < self.SIZE
