"""`postrider templates`."""

import json
from uuid import uuid4

import click
import pytest
from postrider_client.cli.template_files import TemplateDirectory

from tests.clients.faulty import Answer, proxy

pytestmark = pytest.mark.stack


@pytest.fixture
def template(client):
    """Return a template with an alias, the only one of the workspace."""
    for other in client.templates.list():
        client.templates.delete(other.id)
    alias = f"welcome-{uuid4().hex}"
    fields = {"name": "Welcome", "subject": "Hi: {{name}}", "html_content": "<p>Hé {{name}}</p>\r\n<p>Bye</p>\n"}
    return client.templates.create(**fields, alias=alias, strict_variables=True)


@pytest.fixture
def directory(cli):
    return cli.home / "templates"


def test_templates_are_pulled_edited_and_pushed(cli, client, template, directory):
    assert cli.run("templates", "pull").json == {"pulled": [template.alias], "kept": []}
    file = directory / f"{template.alias}.html"
    text = file.read_bytes().decode()
    assert text.startswith("---\nname: Welcome\nsubject: 'Hi: {{name}}'\n")
    assert text.endswith("---\n<p>Hé {{name}}</p>\r\n<p>Bye</p>\n")
    assert cli.run("templates", "push").json == {"pushed": [], "skipped": []}

    file.write_bytes(text.replace("Bye", "See you").encode())
    (directory / f"{template.alias}.txt").write_text("Hello {{name}}\n")
    result = cli.run("templates", "push", "--dry-run")
    assert result.json == {"changed": [template.alias], "skipped": []}
    assert "-<p>Bye</p>" in result.errors
    assert "+<p>See you</p>" in result.errors
    assert "Bye" in client.templates.get(template.id).html_content
    assert cli.run("templates", "push").code == 2
    assert cli.run("templates", "push", "--yes").json["pushed"] == [template.alias]
    changed = client.templates.get(template.id)
    assert (changed.text_content, changed.strict_variables) == ("Hello {{name}}", True)
    assert changed.html_content == "<p>Hé {{name}}</p>\r\n<p>See you</p>"
    assert cli.run("templates", "push", "--yes").json == {"pushed": [], "skipped": []}


def test_a_new_file_becomes_a_template_with_its_name_as_alias(cli, client, template, directory):
    directory.mkdir()
    (directory / "receipt.html").write_text("---\nname: Receipt\nsubject: Order {{id}}\n---\n<p>Thanks</p>\n")
    assert cli.run("templates", "push", "--yes").json["pushed"] == ["receipt"]
    created = client.templates.get("receipt")
    assert (created.name, created.alias, created.html_content) == ("Receipt", "receipt", "<p>Thanks</p>")
    assert cli.run("templates", "push", "--yes").json["pushed"] == []
    assert client.templates.get(template.id).alias == template.alias


def test_a_template_without_an_alias_has_its_id_as_the_name_of_the_file(cli, client, template, directory):
    client.templates.update(template.id, alias=None)
    cli.run("templates", "pull")
    file = directory / f"{template.id}.html"
    file.write_text(file.read_text().replace("Bye", "See you"))
    assert cli.run("templates", "push", "--yes").json["pushed"] == [template.id]
    assert client.templates.get(template.id).alias is None


def test_pull_keeps_files_with_local_changes_and_updates_others(cli, client, template, directory):
    other = client.templates.create(name="Other", subject="Old", html_content="<p></p>", alias=f"o{uuid4().hex}")
    cli.run("templates", "pull")
    file = directory / f"{template.alias}.html"
    mine = file.read_bytes().replace(b"Bye", b"Mine")
    file.write_bytes(mine)
    client.templates.update(template.id, subject="Theirs")
    client.templates.update(other.id, subject="New")
    result = cli.run("templates", "pull")
    assert (result.code, json.loads(result.output)) == (1, {"pulled": [other.alias], "kept": [template.alias]})
    assert f"{template.alias} has local changes" in result.errors
    assert file.read_bytes() == mine
    assert "subject: New" in (directory / f"{other.alias}.html").read_text()
    assert cli.run("templates", "pull", "--force").json["pulled"] == [template.alias]
    assert "subject: Theirs" in file.read_text()


def test_pull_keeps_a_text_file_that_is_no_part_of_a_template(cli, template, directory):
    directory.mkdir()
    file = directory / f"{template.alias}.txt"
    file.write_text("Mine")
    result = cli.run("templates", "pull")
    assert (result.code, json.loads(result.output)["kept"], file.read_text()) == (1, [template.alias], "Mine")
    assert cli.run("templates", "pull", "--force").json["pulled"] == [template.alias]
    assert not file.exists()


def test_push_skips_templates_that_were_changed_on_the_service(cli, client, template, directory):
    cli.run("templates", "pull")
    file = directory / f"{template.alias}.html"
    file.write_text(file.read_text().replace("Bye", "Mine"))
    client.templates.update(template.id, subject="Theirs")
    result = cli.run("templates", "push", "--yes")
    assert (result.code, f"{template.alias} was changed on the service" in result.errors) == (1, True)
    assert client.templates.get(template.id).subject == "Theirs"
    assert cli.run("templates", "push", "--yes", "--force").json["pushed"] == [template.alias]
    assert "Mine" in client.templates.get(template.id).html_content


INVALID = [
    ("<p>Hi</p>", "has no front matter"),
    ("---\nname: [\n---\n", "is not valid YAML"),
    (
        "---\nname: Hi\nsubject: Order: sent\n---\n",
        (
            "invalid.html:3: The front matter is not valid YAML: mapping values are not allowed here. Put a value with "
            'special characters in quotes, such as subject: "Order {{number}}: sent".'
        ),
    ),
    ("---\nname: Hi\nsubject: [Hi] Ada\n---\n", "in quotes, such as"),
    ("---\nname: Hi\nsubject: {{name}}\n---\n", "in quotes, such as"),
    ("---\nname: Hi\nsubject: {name}\n---\n", "must be text. Put a value with special characters in quotes"),
    ("---\nname: Hi\n---\n", "needs name and subject"),
    ("---\nname: Hi\nsubject: Hi\ncolour: red\n---\n", "unknown fields: colour"),
    ("---\nname: Hi\nsubject: Hi\nstrict_variables: 1\n---\n", "must be true or false"),
    ("---\nname: Hi\nsubject: [Hi]\n---\n", "must be text"),
    ("---\nname: Hi\nsubject: " + "[" * 2000 + "\n---\n", "is not valid YAML"),
]


def test_invalid_files_are_one_line_and_push_nothing(cli, directory):
    directory.mkdir()
    for text, message in INVALID:
        (directory / "invalid.html").write_text(text)
        result = cli.run("templates", "push", "--yes")
        assert (result.code, result.errors.count("\n"), message in result.errors) == (1, 1, True), text[:60]


def test_links_to_other_files_are_refused_by_name(tmp_path):
    directory = tmp_path / "templates"
    directory.mkdir()
    for secret in (tmp_path / "secret.html", directory / ".env", directory / ".hidden.html", directory / "b.html"):
        secret.write_text("---\nname: SECRET\nsubject: SECRET\n---\nSECRET")
    (directory / "a.html").symlink_to("../secret.html")
    (directory / "b.txt").symlink_to(".env")
    with pytest.raises(click.ClickException) as refused:
        TemplateDirectory(directory).read_all()
    for file, reason in (("a.html", "It must be in"), (".hidden.html", "Hidden files"), ("b.txt", "Hidden files")):
        assert f"{directory / file} cannot be read: {reason}" in refused.value.message
    assert "SECRET" not in refused.value.message


def test_values_in_front_matter_are_text(cli, client, template, directory):
    directory.mkdir()
    (directory / "times.html").write_text("---\nname: 2026-99-99\nsubject: 12:30\n---\n<p></p>\n")
    assert cli.run("templates", "push", "--yes").json["pushed"] == ["times"]
    created = client.templates.get("times")
    assert (created.name, created.subject) == ("2026-99-99", "12:30")


def test_a_name_of_the_service_that_is_a_path_writes_no_file(cli, service, template):
    listed = service.stack.call("GET", "/templates").body
    (item,) = (one for one in listed["data"] if one["id"] == template.id)
    for alias in ("../outside", "/tmp/outside", "a/b", ".hidden"):
        answers = ({**listed, "data": [{**item, "alias": alias}]}, {**template.raw, "alias": alias})
        with proxy(service.stack.url, *(Answer(200, {}, json.dumps(one).encode()) for one in answers)) as server:
            result = cli.run("templates", "pull", "--url", server.url)
        assert (result.code, "has no valid name for a file" in result.errors) == (1, True), alias
        assert list(cli.home.iterdir()) == []


def test_an_invalid_file_of_fingerprints_is_one_line(cli, directory):
    directory.mkdir()
    for text in ("<<<<<<< ours", "[]", '{"http://localhost": 1}'):
        (directory / ".postrider.json").write_text(text)
        result = cli.run("templates", "pull")
        assert (result.code, result.errors.count("\n"), "is not valid" in result.errors) == (1, 1, True), text


def test_a_terminal_shows_the_changes_in_colour_and_asks(cli, client, template, directory):
    cli.run("templates", "pull")
    file = directory / f"{template.alias}.html"
    file.write_text(file.read_text().replace("Bye", "See you"))
    for answer, content in (("n", "Bye"), ("y", "See you")):
        with cli.terminal("templates", "push") as terminal:
            terminal.wait_for("Change 1 templates?")
            assert (terminal.colour_of("+<p>See"), terminal.colour_of("-<p>Bye")) == ("green", "red")
            terminal.type(f"{answer}\n")
            terminal.finish()
            assert terminal.code == (0 if answer == "y" else 130)
        assert content in client.templates.get(template.id).html_content


SET = {
    "_brand.html": "<html>{{{content}}}{{> footer}}</html>\n",
    "_brand.txt": "{{{content}}}\n",
    "partials/footer.html": "<p>Bye</p>\n",
    "partials/footer.de.html": "<p>Tschüss</p>\n",
    "order.html": "---\nname: Order\nsubject: Order {{number}}\nlayout: brand\nlocale: en\n---\n<p>{{number}}</p>\n",
    "order.txt": "{{number}}\n",
    "order.de.html": "---\nsubject: Bestellung {{number}}\n---\n<p>Nr. {{number}}</p>\n",
}


def write_set(directory, changes=()):
    for name, text in {**SET, **dict(changes)}.items():
        file = directory / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def test_a_set_of_templates_is_pushed_and_pulled(cli, client, template, directory):
    client.templates.delete(template.id)
    write_set(directory)
    assert cli.run("templates", "push", "--yes").json["pushed"] == ["footer", "brand", "order"]
    preview = client.templates.preview("order", data={"number": 7}, locale="de")
    assert (preview.subject, preview.html) == ("Bestellung 7", '<html lang="de"><p>Nr. 7</p><p>Tschüss</p></html>')
    assert cli.run("templates", "push", "--yes").json["pushed"] == []
    before = {file.relative_to(directory).as_posix(): file.read_text() for file in directory.rglob("*.*ml")}
    for file in directory.rglob("*.*"):
        file.unlink()
    assert cli.run("templates", "pull").json["pulled"] == ["brand", "footer", "order"]
    pulled = {file.relative_to(directory).as_posix(): file.read_text() for file in directory.rglob("*.*ml")}
    assert pulled.keys() == before.keys()
    assert pulled["order.de.html"] == SET["order.de.html"]
    assert "layout: brand\nlocale: en\n" in pulled["order.html"]
    client.templates.update("footer", locales=None)
    cli.run("templates", "pull")
    assert not (directory / "partials/footer.de.html").exists()


def test_a_name_makes_a_file_a_template_and_not_a_language(tmp_path):
    write_set(tmp_path)
    (tmp_path / "order.de.html").write_text("---\nname: Other\nsubject: x\n---\n<p></p>\n")
    contents = TemplateDirectory(tmp_path).read_all()
    assert (contents["order"].locales, contents["order.de"].name) == ({}, "Other")


CHECKED = [
    ("order.html", "<p>{{> nothing}}</p>", "error", "unknown_partial", 1),
    ("_brand.html", "<p>no place</p>", "error", "content_placeholder", 1),
    ("partials/footer.html", "<p>\n<a href='http://example.com'></p>", "warning", "insecure_link", 2),
    ("partials/footer.html", "\n\n<img src=https://example.com/a.png>", "warning", "image_without_text", 3),
    ("partials/footer.html", "<!-- " + "x" * 100_000 + " -->", "warning", "weight", 1),
    ("order.de.html", "<p>{{count}} of {{formatNumber number}}</p>", "warning", "different_variables", 1),
    ("order.fr.html", "<p>{{number}}</p>", "warning", "missing_translation", 1),
]


def test_files_are_checked_without_a_service(cli, directory):
    write_set(directory, {"partials/footer.html": "<p><img src='https://a.example' alt=''> {{> other }}</p>"})
    (directory / "partials/other.html").write_text("x")
    assert cli.run("templates", "check").code == 0
    for name, text, level, code, line in CHECKED:
        for file in directory.rglob("*.*"):
            file.unlink()
        write_set(directory)
        front = "---\nname: Order\nsubject: Order {{number}}\nlayout: brand\n---\n" if name == "order.html" else ""
        (directory / name).write_text(front + text)
        failing = cli.run("templates", "check", "--fail-on", level)
        found = [(one["level"], one["code"]) for one in json.loads(failing.output)["problems"]]
        assert (failing.code, (level, code) in found) == (1, True), (name, found)
        (problem, *_) = [one for one in json.loads(failing.output)["problems"] if one["code"] == code]
        assert problem["line"] == line + front.count("\n"), name
        assert cli.run("templates", "check", "--fail-on", "never").code == 0
        assert cli.run("templates", "check").code == (1 if level == "error" else 0)
