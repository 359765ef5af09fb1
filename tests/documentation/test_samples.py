"""Every code sample of the quick starts and guides runs against a running service, in its language."""

import json
import re
from collections import defaultdict

import pytest
from django.db import connection
from markdown_it import MarkdownIt

from delivery.transports.transports_file import read_transports
from documentation.pages import directory
from templates_app.language.rendering import RenderMode, render
from templates_app.language.syntax import compile_template
from tests.documentation.conftest import LANGUAGES
from tests.documentation.test_reference_samples import delete_streams
from tests.stack.stack import wait_for

PAGES = sorted(
    str(path.relative_to(directory()).with_suffix(""))
    for folder in ("quickstart", "guides")
    for path in (directory() / folder).glob("*.md")
)
# Not programs: output, commands that install something, data, and markup for an email.
NOT_RUN = {"text", "json", "html", "yaml"}
# tests/clients/test_cli_apply_guide.py runs these samples: they need files and a management key.
RUN_ELSEWHERE = {"guides/configuration"}
SETTINGS = "EMAIL_BACKEND"


def tokens_of(page: str):
    return MarkdownIt("commonmark").parse((directory() / f"{page}.md").read_text(encoding="utf-8"))


def fences(page: str) -> list[tuple[str, str]]:
    """Return language and text of each code block."""
    return [(token.info, token.content) for token in tokens_of(page) if token.type == "fence"]


def programs(page: str) -> dict[str, str]:
    """Return one program for each language: its samples, in order."""
    found = defaultdict(list)
    for language, text in fences(page):
        if language not in NOT_RUN:
            found[language].append(text)
    return {language: "\n".join(texts) for language, texts in found.items()}


def test_every_sample_has_a_known_language():
    for page in PAGES:
        assert {language for language, _ in fences(page)} <= {*LANGUAGES, *NOT_RUN}, page


@pytest.mark.parametrize("page", PAGES)
def test_json_samples_are_json(page):
    for language, text in fences(page):
        if language == "json":
            assert json.loads(text), text


@pytest.mark.full
@pytest.mark.parametrize("page", [page for page in PAGES if page not in RUN_ELSEWHERE and programs(page)])
def test_the_samples_of_a_page_run(page, runner, tmp_path):
    delete_streams(runner.stack)
    for language, text in programs(page).items():
        home = tmp_path / language
        home.mkdir()
        source = text
        if SETTINGS in text:
            settings, source = (block for name, block in fences(page) if name == language)
            (home / "settings.py").write_text(settings)
        runner.run(language, with_service(source, runner.stack), home=home)
    if page.startswith("quickstart/"):
        wait_for(lambda: arrived(runner.stack, page), seconds=60, what=f"the email of {page}")


def with_service(source: str, stack) -> str:
    receiver = f"127.0.0.1:{stack.environment['INBOUND_PORT']}"
    service = source.replace("https://mail.example.com", stack.url).replace("127.0.0.1:2526", receiver)
    return service.replace("pr_…", stack.key)


def arrived(stack, page: str) -> bool:
    name = page.rpartition("/")[2]
    subject = f"Hello from {name}"
    return bool(stack.query("SELECT 1 FROM inbox_caughtmail WHERE lower(subject) = lower(%s)", subject))


@pytest.mark.django_db
def test_the_statements_of_the_page_about_scaling_are_valid():
    statements = "".join(text for language, text in fences("scaling") if language == "sql")
    with connection.cursor() as cursor:
        # Roles belong to the whole cluster, which other tests use at the same time.
        cursor.execute(statements.replace("ALTER ROLE postrider SET", "SET LOCAL"))
        cursor.execute("SELECT current_setting('lock_timeout'), current_setting('plan_cache_mode')")
        assert cursor.fetchone() == ("5s", "force_generic_plan")


@pytest.mark.parametrize("page", ["transports", "guides/warm-up"])
def test_the_transports_of_a_page_are_a_valid_file(page, tmp_path):
    (text,) = [text for language, text in fences(page) if language == "yaml"]
    (tmp_path / "transports.yaml").write_text(text)
    (tmp_path / "relay-url.secret").write_text("smtp://user:password@relay.example:587")
    (tmp_path / "postmark.secret").write_text("server_token: secret")
    transports = read_transports(tmp_path / "transports.yaml")
    assert transports.transports["own"].per_day


@pytest.mark.full
def test_an_unregistered_domain_is_refused_as_the_quick_start_says(runner, tmp_path):
    source = programs("quickstart/python")["python"]
    assert "422 domain_not_registered" in runner.run("python", source, home=tmp_path)


def template_examples() -> list[tuple[str, str]]:
    text = (directory() / "guides" / "templates.md").read_text(encoding="utf-8").partition("## Language")[2]
    lines = re.findall(r"^\| `(.+?)` \| (?:`(.*?)`|nothing) \|", text, re.MULTILINE)
    return [(source.replace("\\|", "|"), result) for source, result in lines]


@pytest.mark.parametrize(("source", "result"), template_examples())
def test_each_example_of_the_template_language_is_right(source, result):
    (data,) = [json.loads(text) for language, text in fences("guides/templates") if language == "json"]
    assert render(compile_template(source), data, mode=RenderMode.HTML).text == result


def test_the_examples_of_the_template_language_are_found():
    assert len(template_examples()) > 20


def simulated() -> list[tuple[str, str, str]]:
    text = (directory() / "guides" / "simulator.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^\| (?:`(\w+@simulator\.test)`|every other address.*?) \| (.+) \| `(\w+)` \|$", text, re.MULTILINE
    )
    return [(address or "nobody@simulator.test", events, status) for address, events, status in lines]


@pytest.mark.full
@pytest.mark.parametrize(("address", "events", "status"), simulated())
def test_each_address_of_the_simulator_behaves_as_documented(address, events, status, stack):
    email = stack.send(to=address).body["id"]
    expected = re.findall(r"`([a-z]+)`", events.replace("`deferred` twice", "`deferred`, `deferred`"))
    expected = [name for name in expected if name not in {"unknown_user", "expired", "greylisted"}]

    def timeline() -> list[str]:
        found = stack.call("GET", f"/emails/{email}/events").body["data"]
        return [event["eventType"] for event in found if event["eventType"] != "queued"]

    wait_for(lambda: len(timeline()) >= len(expected), seconds=90, what=f"{expected} of {address}")
    assert timeline() == expected
    assert stack.call("GET", f"/emails/{email}").body["status"] == status
    for reason in re.findall(r"reason `(\w+)`", events):
        reasons = {one["payload"].get("reason") for one in stack.call("GET", f"/emails/{email}/events").body["data"]}
        assert reason in reasons


def test_the_table_of_the_simulator_is_complete():
    assert len(simulated()) == 9
