"""The parameter BY of MAIL (RFC 2852)."""

import pytest

from emails.models import Email
from interfaces.submission.deliver_by import DeliverByRefused, take_deliver_by
from tests.interfaces.submission.fixtures import MESSAGE
from tests.rows import each


@each(("argument", "rest", "seconds"), [
    ("FROM:<a@b.example>", "FROM:<a@b.example>", None),
    ("FROM:<a@b.example> BY=600;R", "FROM:<a@b.example>", 600),
    ("FROM:<a@b.example> SIZE=9 by=+30;rt BODY=8BITMIME", "FROM:<a@b.example> SIZE=9 BODY=8BITMIME", 30),
    ("FROM:<a@b.example> BY=999999999;R", "FROM:<a@b.example>", 604_800),
    ('FROM:<"x BY=1;R"@b.example>', 'FROM:<"x BY=1;R"@b.example>', None),
    ('FROM:<"> BY=1;R"@b.example> SIZE=9', 'FROM:<"> BY=1;R"@b.example> SIZE=9', None),
])  # fmt: skip
def test_by_is_taken_from_the_parameters(argument, rest, seconds):
    assert take_deliver_by(argument) == (rest, seconds)


@each(("value", "code"), [
    ("BY", "501"), ("BY=", "501"), ("BY=600", "501"), ("BY=R", "501"), ("BY=1e3;R", "501"), ("BY=600;X", "501"),
    ("BY=1234567890;R", "501"), ("BY=0;R", "501"), ("BY=-60;R", "501"), ("BY=29;R", "555"), ("BY=600;N", "504"),
    ("BY=-5;NT", "504"),
])  # fmt: skip
def test_by_is_refused(value, code):
    with pytest.raises(DeliverByRefused) as refused:
        take_deliver_by(f"FROM:<a@b.example> {value}")
    assert refused.value.reply.startswith(f"{code} 5.5.4 ")


@pytest.mark.django_db(transaction=True)
def test_it_is_that_of_its_message_only(port):
    with port.client() as client:
        assert client.docmd("MAIL FROM:<a@b.example> BY=600;N")[0] == 504
        for parameter in ("BY=600;R", "", "BY=60;R"):
            assert client.docmd(f"MAIL FROM:<a@b.example> {parameter}".strip())[0] == 250
            client.rcpt("ada@example.com")
            assert client.data(MESSAGE)[0] == 250
        client.docmd("MAIL FROM:<a@b.example> BY=600;R")
        client.rset()
        client.sendmail("a@b.example", ["ada@example.com"], MESSAGE)
    assert [email.deliver_within for email in Email.objects.order_by("created_at", "id")] == [600, None, 60, None]
