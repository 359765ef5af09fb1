"""A running service connects to the declared destinations only (docs/decisions/0377)."""

import json
import os
import subprocess
import sys

import pytest

from tests.stack.isolated import BLOCK_LIST, ELSEWHERE
from tests.stack.packets import Contact, find_others, read_packet
from tests.stack.stack import REPOSITORY

pytestmark = pytest.mark.stack

SECONDS = 300
# A user who is not root gets a namespace in which only this is the same user.
NAMESPACE = ["unshare", "--net", *([] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"])]


def test_a_service_with_all_its_work_sends_no_other_packet(tmp_path):
    command = [*NAMESPACE, sys.executable, "-m", "tests.stack.isolated", str(tmp_path)]
    run = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=SECONDS, check=False)
    logs = "".join(path.read_text("utf-8", "replace")[-3000:] for path in tmp_path.glob("*.log"))
    assert run.returncode == 0, f"{run.stderr}\n{logs}"
    result = json.loads(run.stdout.splitlines()[-1])
    assert result["others"] == []
    # The counter sees what goes elsewhere, and has lost nothing.
    assert result["control"] == [["tcp", *ELSEWHERE[0]], ["udp", *ELSEWHERE[1]]]
    assert result["dropped"] == 0
    # The run has used what it is about.
    used = {"database", "redis", "dns", "mail_hosts", "webhooks", "spam_filter", "own_servers"}
    assert used <= set(result["contacted"])
    assert any(name.endswith(BLOCK_LIST) for name in result["asked"]), result["asked"]
    assert "shop.mail.example" in " ".join(result["asked"])


def test_a_packet_is_read_in_both_versions_of_ip():
    tcp = bytes.fromhex("4500003c0c234000400662 4a0a4d0001c0000201aa400050247925c400000000a002faf0".replace(" ", ""))
    expected = Contact("outside", "tcp", ("10.77.0.1", 43_584), ("192.0.2.1", 80))
    assert read_packet(tcp, interface="outside") == expected
    address = "20010db8000000000000000000000001"
    udp = bytes.fromhex(f"6000000000081140{address}{address[:-1]}2" + "d431003500080000")
    expected = Contact("lo", "udp", ("2001:db8::1", 54_321), ("2001:db8::2", 53))
    assert read_packet(udp, interface="lo") == expected


def test_only_known_targets_on_loopback_are_no_others():
    known = {("127.0.0.1", 53)}
    mine, unknown = ("127.0.0.1", 40_000), ("127.0.0.1", 25)
    contacts = {
        Contact("lo", "udp", mine, ("127.0.0.1", 53)),
        Contact("lo", "udp", ("127.0.0.1", 53), mine),
        Contact("lo", "1", ("127.0.0.1", 0), ("127.0.0.1", 0)),
    }
    assert find_others(dict.fromkeys(contacts, 1), known=known) == []
    assert find_others({Contact("lo", "tcp", mine, unknown): 1}, known=known) == [("tcp", *unknown)]
    # A known place has another meaning on another interface.
    assert find_others({Contact("outside", "udp", mine, ("127.0.0.1", 53)): 1}, known=known) != []
    # A connection from a known port is no answer.
    assert find_others({Contact("lo", "tcp", ("127.0.0.1", 53), unknown): 1}, known=known) == [("tcp", *unknown)]
