"""`postrider domains` and `postrider suppressions`."""

import csv
import io
from uuid import uuid4

import pytest

from tests.clients.messages import someone
from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def domain(client):
    domain = client.domains.create(f"d{uuid4().hex[:12]}.invalid")
    yield domain
    client.domains.delete(domain.id)


def test_domains_are_listed_with_the_number_of_records_to_publish(cli, domain):
    listed = {one["name"]: one["status"] for one in cli.run("domains", "list").json}
    assert (listed[domain.name], "demo.example" in listed) == ("pending", True)
    assert domain.name in cli.screen("domains", "list").text


def test_records_are_shown_by_name_or_id(cli, domain):
    shown = [cli.run("domains", "records", given).json["records"] for given in (domain.name.upper(), domain.id)]
    # Without the status: a worker may check the new domain in between.
    by_name, by_id = ([(one["type"], one["fqdn"], one["value"]) for one in records] for records in shown)
    assert by_name == by_id
    screen = cli.screen("domains", "records", domain.name).text
    assert f"_domainkey.{domain.name}" in screen
    assert "v=DKIM1" in screen


def test_an_unverified_domain_is_exit_code_1_and_an_unknown_one_4(cli, domain):
    result = cli.run("domains", "verify", domain.name)
    assert (result.code, f'"id": "{domain.id}"' in result.output) == (1, True)
    assert cli.run("domains", "verify", "dom_0Uf8c5MnBvCxZaSdFgHjKl").code == 4
    # It is named also with characters of paths.
    unknown = cli.run("domains", "records", "example.com/unknown")
    assert (unknown.code, "no domain example.com/unknown" in unknown.errors) == (4, True)


def test_the_host_of_links_is_chosen_and_removed(cli, client, domain):
    assert cli.run("domains", "tracking", domain.name).code == 2
    assert cli.run("domains", "tracking", domain.name, "links", "--remove").code == 2
    chosen = cli.run("domains", "tracking", domain.name, "links").json
    assert chosen["tracking"]["host"] == f"links.{domain.name}"
    assert client.domains.get(domain.id).tracking.status == "pending"
    screen = cli.screen("domains", "records", domain.name).text
    assert f"links.{domain.name} (pending)" in screen
    assert "mail.service.example" in screen
    assert cli.run("domains", "tracking", domain.id, "--remove").json["tracking"] is None
    assert cli.run("domains", "tracking", domain.id, "bounce").code > 1


def test_a_domain_receives_until_it_is_turned_off(cli, domain):
    assert cli.run("domains", "receiving", domain.name).json["receiving"]["enabled"] is True
    assert "mx.demo.example" in cli.screen("domains", "records", domain.name).text
    assert cli.run("domains", "receiving", domain.id, "--off").json["receiving"]["enabled"] is False


def test_suppressions_are_imported_and_exported_as_csv(cli, tmp_path):
    mark = uuid4().hex
    addresses = [f"{number}-{mark}@example.com" for number in range(2100)]
    rows = "\r\n".join(f'"Smith, {one[:4]}",{one}' for one in addresses)
    (tmp_path / "list.csv").write_bytes(f"\ufeffName,Email\r\n{rows}\r\n".encode())
    assert cli.run("suppressions", "import", "list.csv").json == {"imported": 2100, "rejected": 0}
    exported = cli.run("suppressions", "export", "--search", mark)
    read = list(csv.DictReader(io.StringIO(exported.output)))
    assert sorted(row["email"] for row in read) == sorted(addresses)
    assert {row["reason"] for row in read} == {"manual"}
    assert exported.output.startswith('"email","reason","createdAt"')
    cli.run("suppressions", "export", "--search", mark, "--output", "out.csv")
    assert (tmp_path / "out.csv").read_bytes().decode() == exported.output
    # An exported file can be imported.
    assert cli.run("suppressions", "import", "out.csv").json == {"imported": 2100, "rejected": 0}


def test_suppressions_of_a_stream_are_imported_and_exported(cli, client):
    stream, address = f"s-{uuid4().hex[:8]}", someone()
    client.streams.create(id=stream, name="News", kind="bulk")
    assert cli.run("suppressions", "import", "--stream", stream, stdin=address).json["imported"] == 1
    assert cli.run("suppressions", "import", stdin=address).json["imported"] == 1
    (row,) = csv.DictReader(io.StringIO(cli.run("suppressions", "export", "--stream", stream).output))
    assert (row["email"], row["reason"], row["stream"]) == (address, "manual", stream)
    both = csv.DictReader(io.StringIO(cli.run("suppressions", "export", "--search", address).output))
    assert sorted(row["stream"] for row in both) == ["", stream]


def test_invalid_addresses_are_listed_with_their_lines_and_the_others_suppressed(cli):
    valid = someone()
    result = cli.run("suppressions", "import", stdin=f"no address\n\n{valid}\nalso@@wrong\n")
    assert (result.code, '"imported": 1' in result.output) == (5, True)
    assert "line 1: no address: " in result.errors
    assert "line 4: also@@wrong: " in result.errors
    exported = cli.run("suppressions", "export", "--search", valid)
    assert exported.output.count(valid) == 1
    endless = cli.run("suppressions", "import", stdin="a" * 200_000)
    assert (endless.code, endless.errors.count("\n"), "must be CSV" in endless.errors) == (1, 1, True)
    send = ("send", "--from", "hello@demo.example", "--to", valid, "--subject", "Hi", "--text", "Hi")
    is_refused = lambda: (sent := cli.run(*send)).code == 5 and sent.errors  # noqa: E731
    assert "suppressions export" in wait_for(is_refused, seconds=60, what="the suppression takes effect")


def test_a_refused_export_keeps_the_file(cli, tmp_path):
    (tmp_path / "out.csv").write_text("earlier")
    assert cli.run("suppressions", "export", "--output", "out.csv", POSTRIDER_API_KEY="pr_wrong").code == 3
    assert (tmp_path / "out.csv").read_text() == "earlier"


def test_reports_and_sources_are_shown_and_a_source_is_named(cli, client, domain):
    shown = cli.run("domains", "dmarc", domain.name).json
    assert (shown["totals"]["reported"], shown["organizations"]) == (0, [])
    assert "No DMARC policy" in cli.screen("domains", "dmarc", domain.name).text
    assert cli.run("domains", "sources", domain.name, "--since", "2026-11-01").json == []
    for source in ("192.0.2.7", "mail.example.net"):
        assert cli.run("domains", "name-source", domain.name, source, "Newsletter tool").code == 0
    assert cli.run("domains", "name-source", domain.name, "192.0.2.7", "").code == 0
    assert cli.run("domains", "name-source", domain.name, "com", "x").code > 1
    assert list(client.domains.dmarc_reports(domain.id)) == []
