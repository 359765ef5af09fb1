"""`postrider erase` and `postrider export-subject`."""

import zipfile
from uuid import uuid4

import pytest

from tests.stack.stack import wait_for

pytestmark = pytest.mark.stack


@pytest.fixture
def person(client, service):
    """An address that has got an email."""
    address = f"{uuid4().hex}@example.com"
    client.emails.send(from_="hello@demo.example", to=address, subject="Hi", text="Hello")
    wait_for(lambda: service.received(address), seconds=60, what="the email")
    return address


def test_a_person_is_exported_and_erased(cli, person, tmp_path):
    result = cli.run("export-subject", person, "--output", "person.zip")
    assert (result.code, "The service keeps the file until" in result.errors) == (0, True)
    with zipfile.ZipFile(tmp_path / "person.zip") as archive:
        assert person in archive.read("emails.json").decode()
        assert [name for name in archive.namelist() if name.endswith(".eml")]
    receipt = cli.run("erase", person, "--wait", "--yes").json
    assert (receipt["status"], receipt["deleted"]["emails"], receipt["deleted"]["subjectExports"]) == (
        "completed",
        1,
        1,
    )


def test_an_erasure_is_confirmed_first(cli, person, client):
    assert cli.run("erase", person, stdin="n\n").code == 1
    assert client.emails.list(search=person).fetch().total == 1


def test_without_full_access_nothing_is_exported(cli, person, service, tmp_path):
    result = cli.run("export-subject", person, "--output", "none.zip", POSTRIDER_API_KEY=service.test_key)
    assert result.code == 3
    assert not (tmp_path / "none.zip").exists()
