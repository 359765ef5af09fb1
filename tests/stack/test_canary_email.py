"""A canary of the running service: sent, received, verified and reported; then one without inbound and beat."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import load
from urllib.request import urlopen

import pytest

from tests.core.lib.nameserver import NameServer
from tests.stack.stack import running_stack, wait_for

pytestmark = pytest.mark.stack

CALLS: list[str] = []
EARLIER = """
UPDATE system_mail_canaryrun SET started_at = started_at - interval '{seconds} seconds',
       returned_at = returned_at - interval '{seconds} seconds',
       verified_at = verified_at - interval '{seconds} seconds'
"""


class Switch(BaseHTTPRequestHandler):
    def do_GET(self):
        CALLS.append(self.path)
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def switch():
    CALLS.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Switch)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/check"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def stack(tmp_path, switch):
    variables = {
        "CANARY_MINUTES": "1",
        "CANARY_ADDRESS": "canary@in.demo.example",
        "CANARY_PING_URL": switch,
        "DELIVERY_TRANSPORT": "direct",
        "SYSTEM_FROM": "Postrider <service@demo.example>",
    }
    with NameServer() as dns, running_stack(tmp_path, DNS_SERVERS="{}:{}".format(*dns.address), **variables) as stack:
        stack.execute("UPDATE domains_domain SET status = 'verified' WHERE name = 'demo.example'")
        ((selector, key),) = stack.query(
            "SELECT selector, public_key FROM domains_dkimkey k JOIN domains_domain d ON d.id = k.domain_id"
            " WHERE d.name = 'demo.example'"
        )
        record = f"v=DKIM1; k=rsa; p={key}"
        texts = " ".join(f'"{record[at : at + 200]}"' for at in range(0, len(record), 200))
        dns.put(f"{selector}._domainkey.demo.example", {"TXT": [texts]})
        yield stack


def warnings(stack):
    with urlopen(f"{stack.url}/readyz", timeout=10) as response:
        return load(response).get("warnings", [])


def test_a_canary_comes_back_and_lost_ones_are_named(stack):
    stack.start("web", "inbound", "worker", "beat")
    wait_for(lambda: CALLS, seconds=120, what="the canary came back, and the switch is called")
    runs = "SELECT signature, verified_at IS NOT NULL, late_at IS NULL FROM system_mail_canaryrun ORDER BY started_at"
    assert stack.query(runs)[0] == ("pass", True, True)
    assert warnings(stack) == []
    assert stack.query("SELECT count(*) FROM receiving_message") == [(0,)]

    stack.kill("inbound")
    before = len(stack.query(runs))
    stack.execute(EARLIER.format(seconds=60))
    wait_for(lambda: len(stack.query(runs)) > before, seconds=60, what="the next canary is sent")
    claimed = "SELECT 1 FROM system_mail_systemmail WHERE kind = 'canary' AND state = 'waiting' AND reply <> ''"
    wait_for(lambda: stack.query(claimed), seconds=60, what="the receiver cannot be reached")
    stack.execute(EARLIER.format(seconds=61))
    (warning,) = warnings(stack)
    assert warning.startswith("The canary of the transport default is late. The last stage that worked: claimed")

    stack.kill("beat")
    stack.execute(EARLIER.format(seconds=91))
    assert "No canary has been sent for 2 minutes: beat is not running." in warnings(stack)
