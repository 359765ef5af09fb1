"""A receiver that asks for less, with a real worker and the real pauses (docs/decisions/0278)."""

import time

import pytest

from tests.core.delivery.scripted import ScriptedServer, then_disconnect
from tests.core.lib.nameserver import NameServer
from tests.stack.stack import free_port, wait_for
from tests.stack.test_sending import direct_settings, mail_hosts

SLOW_DOWN = then_disconnect(
    b"421 4.7.28 Gmail has detected an unusual rate of mail originating from your IP address\r\n"
)
WAITING = "SELECT count(*), sum(attempts) FROM emails_pending WHERE domain = 'slow.example'"


def attempts_in(server, *, seconds):
    before = len(server.messages)
    time.sleep(seconds)
    return len(server.messages) - before


@pytest.mark.long
def test_a_receiver_that_slows_everything_gets_a_probe_a_minute_and_all_email_once_it_accepts(web_stack):
    port = free_port()
    slow = ScriptedServer({"dot": SLOW_DOWN}, host="127.0.0.2", port=port)
    good = ScriptedServer(host="127.0.0.3", port=port)
    zones = {"slow.example": {"A": ["127.0.0.2"]}, "good.example": {"A": ["127.0.0.3"]}}
    with NameServer(zones) as names, mail_hosts(slow, good):
        web_stack.start("worker-direct", "beat", **direct_settings(names, port))
        log = web_stack.logs / "worker-direct.log"
        wait_for(lambda: "worker is ready" in log.read_text(), seconds=60, what="the worker gets wake-ups")
        for batch in range(20):
            web_stack.send(to=[f"u{batch}-{number}@slow.example" for number in range(50)])
        attempts_in(slow, seconds=180)
        ((waiting, attempts),) = web_stack.query(WAITING)
        assert waiting == 1000
        assert attempts == len(slow.messages) <= 20
        web_stack.send(to="ada@good.example")
        wait_for(lambda: good.messages, seconds=30, what="email to another receiver")
        assert attempts_in(slow, seconds=120) <= 8
        ((_, attempts),) = web_stack.query(WAITING)
        assert attempts == len(slow.messages)
        refused, slow.script = attempts, {}
        wait_for(lambda: web_stack.query(WAITING)[0][0] <= refused, seconds=120, what="all that waited")
