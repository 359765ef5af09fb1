"""The guides for Debian, executed as they are written, on a clean machine with systemd, PostgreSQL and Redis.

See docs/decisions/0103.
"""

import json
import re

import dkim
import pytest
import trustme

from tests.deploy.debian import copy_source
from tests.deploy.machine import INTERNET, MACHINE, machine_and_internet
from tests.deploy.test_environment_file import AWKWARD, make_env, read_by_a_shell, read_by_compose
from tests.domains.conftest import quoted
from tests.stack.stack import REPOSITORY, wait_for

pytestmark = pytest.mark.long

DOCS = REPOSITORY / "docs"
# Each block sees the variables of the blocks before it, as in the shell of a reader.
BLOCK = """
cd /opt/postrider
[ ! -e /root/variables ] || . /root/variables
set -eu -o pipefail
{commands}
declare -p WORKSPACE KEY >/root/variables 2>/dev/null || true
"""
# In the place of a certificate authority, which the machine cannot reach.
CERTBOT = """#!/bin/sh
set -eu
cd /root
install -D -m 600 --target-directory=/etc/letsencrypt/live/mail.example.com fullchain.pem privkey.pem
while [ "$1" != --deploy-hook ]; do shift; done
RENEWED_LINEAGE=/etc/letsencrypt/live/mail.example.com "$2"
"""
SUBJECTS = [b"Hello", b"Hello over SMTP"]
DNS_OF_THE_SERVER = {
    "mail.example.com": {"A": [MACHINE], "TXT": ['"v=spf1 a -all"']},
    "bounce.mail.example.com": {"MX": ["10 mail.example.com."]},
    "example.org": {"MX": ["10 mx.example.org."]},
    "mx.example.org": {"A": [INTERNET]},
}


def shell_blocks(page, *sections):
    """Return the shell blocks of a page, or of the sections with these headings."""
    text = (DOCS / page).read_text()
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    chosen = [part for part in parts if not sections or part.partition("\n")[0] in sections]
    return [block for part in chosen for block in re.findall(r"^```sh\n(.*?)^```$", part, re.MULTILINE | re.DOTALL)]


def execute(machine, commands):
    needs_packages = re.search(r"apt-get|pip install", commands) is not None
    return machine.run(BLOCK.format(commands=commands), with_network_of_host=needs_packages)


def arrived(internet, count):
    messages = internet.messages()
    return messages if len(messages) >= count else None


def install_certbot(machine):
    program = machine.root / "usr/local/bin/certbot"
    program.write_text(CERTBOT)
    program.chmod(0o755)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with machine_and_internet(tmp_path_factory.mktemp("debian")) as (machine, internet):
        copy_source(machine.root / "opt" / "postrider")
        authority = trustme.CA()
        certificate = authority.issue_cert("mail.example.com")
        certificate.private_key_pem.write_to_path(machine.root / "root/privkey.pem")
        (machine.root / "root/fullchain.pem").write_bytes(b"".join(pem.bytes() for pem in certificate.cert_chain_pems))
        authority.cert_pem.write_to_path(machine.root / "usr/local/share/ca-certificates/test.crt")
        machine.run("update-ca-certificates")
        internet.publish(DNS_OF_THE_SERVER)
        yield machine, internet


def publish_records(machine, internet):
    """Publish the records of the sending domain, as its owner does at a DNS provider."""
    domain = json.loads((machine.root / "opt/postrider/domain.json").read_text())
    zones = {}
    for record in domain["records"]:
        value = f"{record['value']}." if record["type"] == "CNAME" else quoted(record["value"])
        zones.setdefault(record["fqdn"], {})[record["type"]] = [value]
    internet.publish(zones)
    return zones


def test_the_guide_leads_from_a_fresh_server_to_a_signed_email(server):
    machine, internet = server
    zones = {}
    install_certbot(machine)
    for commands in shell_blocks("install-debian.md"):
        execute(machine, commands)
        if "domain.json" in commands and not zones:
            zones = publish_records(machine, internet)
    sources = wait_for(lambda: arrived(internet, 2), seconds=60, what="the emails of the API and over SMTP")
    assert sorted(re.search(rb"^Subject: (.*)\r$", source, re.MULTILINE)[1] for source in sources) == SUBJECTS
    texts = {name: "".join(re.findall(r'"(.*?)"', rows["TXT"][0])) for name, rows in zones.items() if "TXT" in rows}
    for source in sources:
        assert dkim.verify(source, dnsfunc=lambda name, **_: texts[name.decode().rstrip(".")].encode())


def test_all_services_run_in_their_sandbox(server):
    machine, _ = server
    services = [f"postrider-{name}.service" for name in ("web", "worker@1", "beat", "inbound", "submission")]
    units = " ".join([*services, "postrider-web.socket", "postrider.target"])
    assert set(machine.run(f"systemctl is-active {units}").split()) == {"active"}
    restarts = machine.run("systemctl show --property=Id,NRestarts 'postrider-*.service'")
    assert set(re.findall(r"NRestarts=(\d+)", restarts)) == {"0"}, restarts + machine.run("journalctl -u 'postrider-*'")


def test_the_jobs_of_the_timers_run(server):
    machine, _ = server
    machine.run("systemctl start postrider-backup.service postrider-tracking-hosts.service")
    assert re.search(r"\.dump$", machine.run("ls /var/backups/postrider"))
    # It finds faults here, such as the missing reverse DNS, and fails for that reason alone.
    machine.run("systemctl start postrider-doctor.service || true")
    report = machine.run("journalctl --unit=postrider-doctor --output=cat")
    assert "reverse_dns" in report
    assert "The last backup is 0 hours old." in report, report
    timers = machine.run("systemctl list-timers --no-pager 'postrider-*'")
    assert {"postrider-backup", "postrider-doctor", "postrider-tracking-hosts"} <= {
        *re.findall(r"postrider-[a-z-]+", timers)
    }


def test_the_firewall_is_loaded(server):
    machine, _ = server
    assert "skuid" in machine.run("nft list table inet postrider")
    refused = machine.run("setpriv --reuid=postrider --clear-groups curl --silent http://11.0.0.2:8080 || echo exit $?")
    assert "exit 7" in refused


def test_the_limits_of_the_units_apply(server):
    machine, _ = server
    shown = machine.run(
        "systemctl show --property=MemoryMax,LimitNOFILE postrider-web postrider-inbound postrider-beat"
    )
    assert shown.count("LimitNOFILE=65536") == 3
    assert "MemoryMax=268435456" in shown
    assert "infinity" not in shown


def test_no_other_program_listens_for_mail(server):
    """A package that the guide installs may recommend a mail server."""
    machine, _ = server
    assert "exim4" not in machine.run("dpkg-query --show --showformat='${Package} '")
    assert "postrider" in machine.run(
        "cat /proc/$(systemctl show --property=MainPID --value postrider-inbound)/cmdline"
    )


def test_processes_have_the_home_of_their_account(server):
    machine, _ = server
    assert (
        machine.run("postrider-admin manage shell -c 'import os; print(os.environ[\"HOME\"])'").split()[-1]
        == "/opt/postrider"
    )


def test_requests_wait_while_web_restarts(server):
    machine, _ = server
    codes = machine.run("""
        . /root/variables
        systemctl restart postrider-web.service &
        while kill -0 $! 2>/dev/null; do
            curl --silent --output /dev/null --write-out '%{http_code}\\n' \\
                -H "Authorization: Bearer $KEY" https://mail.example.com/v1/emails
            sleep 0.1
        done
    """)
    assert set(codes.split()) == {"200"}


def test_a_restored_database_sends_only_when_released(server):
    machine, internet = server
    back_up, restore, release = shell_blocks("backup.md", "Back up on Debian", "Restore on Debian")
    machine.run("systemctl stop postrider-worker@1.service")
    send = shell_blocks("install-debian.md", "11. The first email")[0]
    execute(machine, send)
    execute(machine, back_up)
    before = len(internet.messages())
    execute(machine, restore)
    report = json.loads(
        execute(machine, "postrider-admin doctor --json --backups /var/backups/postrider 2>/dev/null || true")
    )
    assert {check["check"]: check["verdict"] for check in report["checks"]}["backups"] == "ok"
    assert len(internet.messages()) == before
    execute(machine, release)
    wait_for(lambda: len(internet.messages()) == before + 1, seconds=60, what="the email of the backup")


def test_an_upgrade_keeps_accepted_email(server):
    machine, internet = server
    before = len(internet.messages())
    copy_source(machine.root / "root/postrider-1.1.0")
    (machine.root / "opt/postrider/removed_module.py").touch()
    machine.run("cd /root && tar -czf postrider-1.1.0.tar.gz postrider-1.1.0 && rm -r postrider-1.1.0")
    machine.run("cd /root && sha256sum postrider-1.1.0.tar.gz >postrider-1.1.0.tar.gz.sha256")
    for commands in shell_blocks("upgrades.md", "From an archive"):
        execute(machine, commands)
    assert not (machine.root / "opt/postrider/removed_module.py").exists()
    for commands in shell_blocks("upgrades.md", "On Debian"):
        execute(machine, commands)
    execute(machine, shell_blocks("install-debian.md", "11. The first email")[0])
    wait_for(lambda: len(internet.messages()) == before + 1, seconds=60, what="the email after the upgrade")


def test_systemd_reads_the_environment_file_as_a_shell_does(server):
    machine, _ = server
    file = make_env(machine.root / "root/environment", **AWKWARD)
    show = "systemd-run --quiet --wait --pipe --property=EnvironmentFile=/root/environment env --null"
    read = dict(row.split("=", 1) for row in machine.run(show).split("\0") if row)
    shell = read_by_a_shell(file)
    assert {name: read[name] for name in read_by_compose(file)} == {name: shell[name] for name in read_by_compose(file)}
