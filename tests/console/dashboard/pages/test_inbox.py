from datetime import UTC, datetime

from core.delivery.recipients import read_recipients
from interfaces.inbound.inbox.models import CaughtMail
from interfaces.inbound.inbox.retention import clear_inbox
from tests.console.dashboard.conftest import make_caught
from tests.rows import each


def test_lists_captured_emails_without_reading_the_sources(owner, alice, django_assert_num_queries):
    make_caught(alice.workspace, subject="Welcome aboard")
    make_caught(None, subject="System email")

    page = owner.get("/dashboard/inbox/").content.decode()

    assert "Welcome aboard" in page
    assert "System email" not in page
    with django_assert_num_queries(5) as queries:
        owner.get("/dashboard/inbox/")

    assert not [query for query in queries.captured_queries if '"source"' in query["sql"]]


def test_shows_headers_text_and_source(owner, alice):
    mail = make_caught(alice.workspace)

    response = owner.get(f"/dashboard/inbox/{mail.id}/")

    page = response.content.decode()
    assert "MIME-Version" in page
    assert "Hello in text" in page
    assert "&lt;h1&gt;Hello in HTML&lt;/h1&gt;" in page
    assert "<h1>Hello in HTML" not in page


def test_the_source_can_be_downloaded(owner, alice):
    mail = make_caught(alice.workspace, b"Subject: x\r\n\r\n<script>alert(1)</script>")

    response = owner.get(f"/dashboard/inbox/{mail.id}/source/")

    assert response.content == mail.source
    assert response["Content-Type"] == "message/rfc822"
    assert response["Content-Disposition"] == f'attachment; filename="{mail.id}.eml"'
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Content-Security-Policy"].startswith("sandbox")


def test_exists_for_the_inbox_transport_only(owner, alice, settings):
    mail = make_caught(alice.workspace)
    settings.DELIVERY_TRANSPORT = "smtp"

    for path in ("", f"{mail.id}/", f"{mail.id}/preview/", f"{mail.id}/source/", "clear/"):
        assert owner.get(f"/dashboard/inbox/{path}").status_code == 404, path
    assert "/dashboard/inbox/" not in owner.get("/dashboard/").text


def test_shows_captured_emails_with_a_mark_with_any_transport(owner, alice, settings):
    settings.DELIVERY_TRANSPORT, settings.RECIPIENTS = "smtp", read_recipients("captured")
    mail = make_caught(alice.workspace, is_captured=True)
    assert '<span class="pr-badge pr-neutral">captured</span>' in owner.get("/dashboard/inbox/").text
    assert "This email was captured: its recipient did not get it." in owner.get(f"/dashboard/inbox/{mail.id}/").text
    CaughtMail.objects.update(is_captured=False)
    assert "did not get it" not in owner.get(f"/dashboard/inbox/{mail.id}/").text


class TestSearch:
    def found(self, owner, search: str) -> list[str]:
        return [row.subject for row in owner.get("/dashboard/inbox/", {"search": search}).context["listing"].rows]

    def test_finds_recipients_senders_and_subjects(self, owner, alice):
        fields = {"subject": "Receipt 100% a_b", "recipient": "bo@example.com", "sender": "Shop <hi@alice.example>"}
        make_caught(alice.workspace, **fields)
        make_caught(alice.workspace, subject="Other 100 axb", sender="Alice <other@alice.example>")

        for search in ("RECEIPT", "bo@", "Shop <", "100%", "a_b"):
            assert self.found(owner, search) == ["Receipt 100% a_b"], search
        assert "No captured emails match" in owner.get("/dashboard/inbox/?search=nothing").content.decode()

    def test_is_limited_to_the_newest(self, owner, alice, monkeypatch):
        monkeypatch.setattr("console.dashboard.pages.inbox.NEWEST", 2)
        for number in range(3):
            make_caught(
                alice.workspace, subject=f"Receipt {number}", received_at=datetime(2026, 11, number + 1, tzinfo=UTC)
            )

        assert self.found(owner, "receipt") == ["Receipt 2", "Receipt 1"]


class TestDeletingAll:
    def test_deletes_those_of_the_workspace(self, owner, alice, bob):
        for workspace in (alice.workspace, alice.workspace, bob.workspace, None):
            make_caught(workspace, received_at=datetime(2026, 11, 1, tzinfo=UTC))

        assert "All emails in the inbox will be deleted" in owner.get("/dashboard/inbox/clear/").text
        assert CaughtMail.objects.count() == 4
        response = owner.post("/dashboard/inbox/clear/", follow=True)

        assert "2 emails were deleted." in response.content.decode()
        assert {mail.workspace for mail in CaughtMail.objects.all()} == {bob.workspace, None}

    def test_deletes_a_limited_number_at_once(self, alice, monkeypatch):
        monkeypatch.setattr("interfaces.inbound.inbox.retention.BATCH_SIZE", 2)
        monkeypatch.setattr("interfaces.inbound.inbox.retention.CLEAR_AT_ONCE", 4)
        for _ in range(5):
            make_caught(alice.workspace, received_at=datetime(2026, 11, 1, tzinfo=UTC))

        assert [clear_inbox(alice.workspace.id), clear_inbox(alice.workspace.id)] == [4, 1]


def test_the_html_check_is_shown(owner, alice):
    bad = make_caught(alice.workspace, b"Content-Type: text/html\r\n\r\n<form><img src='a.png'></form>")
    good = make_caught(alice.workspace)

    assert len(owner.get(f"/dashboard/inbox/{bad.id}/").context["problems"]) == 4
    page = owner.get(f"/dashboard/inbox/{good.id}/").content.decode()
    assert "No problems found" in page


HOSTILE = {
    "nothing": b"",
    "only newlines": b"\n" * 1000,
    "no headers": b"\r\n\r\nbody",
    "binary": bytes(range(256)) * 40,
    "unknown charset": b"Content-Type: text/html; charset=x-klingon\r\n\r\n<p>\xff\xfe</p>",
    "codec that is no charset": b"Content-Type: text/plain; charset=zlib\r\n\r\nhello",
    "slow charset": b"Content-Type: text/plain; charset=punycode\r\n\r\n" + b"a" * 100_000 + b"-99",
    "lone surrogates": b'Content-Type: text/plain; charset="utf-7"\r\n\r\n+2AA-',
    "broken encoded word": b"Subject: =?utf-8?b?!!!?= =?nope?q?=ff?=\r\n\r\nx",
    "bytes in headers": b"Subject: \xff\xfe\x00 caf\xc3\xa9\r\nFrom: \xe9\r\n\r\nx",
    "broken base64": b"Content-Type: text/html\r\nContent-Transfer-Encoding: base64\r\n\r\n!!!! not =base= 64",
    "unknown encoding": b"Content-Type: text/html\r\nContent-Transfer-Encoding: rot13\r\n\r\nuryyb",
    "many headers": b"X-Bomb: 1\r\n" * 20_000 + b"\r\nx",
    "a long header": b"Content-Type: multipart/mixed; " + b'a="b;c";' * 100_000 + b"\r\n\r\nx",
    "deep comments": b"From: " + b"(" * 50_000 + b"\r\nSubject: x\r\n\r\nx",
    "no boundary": b"Content-Type: multipart/mixed\r\n\r\n--x\r\n\r\nhello",
    "never ending": b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n--x\r\nContent-Type: text/html\r\n\r\n<p>hi',
    "many parts": b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n' + b"--x\r\n\r\na\r\n" * 5_000,
    "nested parts": b"".join(
        b'Content-Type: multipart/mixed; boundary="%d"\r\n\r\n--%d\r\n' % (level, level) for level in range(2_000)
    ),
    "mail in mail in mail": b"Content-Type: message/rfc822\r\n\r\n" * 2_000,
    "a filename with a path": b'Content-Disposition: attachment; filename="../../etc/passwd\x00.html"\r\n\r\nx',
    "a broken filename": b"Content-Disposition: attachment; filename*=x'y'%ff%fe; filename*0*=%\r\n\r\nx",
}


@each(("name", "source"), HOSTILE.items())
def test_no_message_breaks_a_page(owner, alice, name, source):
    mail = make_caught(alice.workspace, source)
    for path, statuses in {"": {200}, "preview/": {200, 404}, "source/": {200}}.items():
        assert owner.get(f"/dashboard/inbox/{mail.id}/{path}").status_code in statuses, path
