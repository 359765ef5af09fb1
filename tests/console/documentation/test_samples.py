"""Every code sample of the quick starts and guides runs against a running service, in its language."""

import json
import re
import zlib
from collections import defaultdict
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection
from markdown_it import MarkdownIt

from console.documentation.pages import directory
from core.delivery.receivers_file import read_receivers
from core.delivery.transports.transports_file import read_transports
from templates_app.language.rendering import RenderMode, render
from templates_app.language.syntax import compile_template
from tests.console.documentation.conftest import LANGUAGES
from tests.console.documentation.test_reference_samples import delete_streams
from tests.stack.stack import wait_for

PAGES = sorted(
    str(path.relative_to(directory()).with_suffix(""))
    for folder in ("quickstart", "guides")
    for path in (directory() / folder).glob("*.md")
)
# Not programs: output, commands that install something, data, and markup for an email.
NOT_RUN = {"text", "json", "html", "yaml", "typescript"}
# Samples that need files, a management key or a generator, with their tests: test_cli_apply_guide.py and
# sdks/test_generated_clients.py of tests/clients.
RUN_ELSEWHERE = {"guides/configuration", "guides/generated-clients"}
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


def test_json_samples_are_json():
    samples = [text for page in PAGES for language, text in fences(page) if language == "json"]
    assert all(map(json.loads, samples))


def rows() -> Iterator[Any]:
    """Yield each page with languages: the first, whose samples create what the others use, and for guides one other.

    Only `--long` runs all samples of a guide.
    """
    for page in (page for page in PAGES if page not in RUN_ELSEWHERE and programs(page)):
        first, *others = programs(page)
        chosen = others[zlib.crc32(page.encode()) % len(others) :][:1] if others else []
        is_whole = page.startswith("quickstart/") or others == chosen
        yield pytest.param(page, [first, *(others if is_whole else chosen)], id=page)
        if not is_whole:
            yield pytest.param(page, [first, *others], id=f"{page}-all", marks=pytest.mark.long)


@pytest.mark.full
@pytest.mark.parametrize(("page", "languages"), list(rows()))
def test_the_samples_of_a_page_run(page, languages, runner, tmp_path):
    delete_streams(runner.stack)
    for language in languages:
        home, source = tmp_path / language, programs(page)[language]
        home.mkdir()
        if SETTINGS in source:
            settings, source = (block for name, block in fences(page) if name == language)
            (home / "settings.py").write_text(settings)
        runner.run(language, with_service(source, runner.stack), home=home)
    if page.startswith("quickstart/"):
        wait_for(lambda: arrived(runner.stack, page), seconds=60, what=f"the email of {page}")


def with_service(source: str, stack) -> str:
    inbound = f"127.0.0.1:{stack.environment['INBOUND_PORT']}"
    service = source.replace("https://mail.example.com", stack.url).replace("127.0.0.1:2526", inbound)
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


def test_the_transports_of_a_page_are_a_valid_file(tmp_path):
    (tmp_path / "relay-url.secret").write_text("smtp://user:password@relay.example:587")
    (tmp_path / "postmark.secret").write_text("server_token: secret")
    for page in ("transports", "guides/warm-up"):
        text = next(text for language, text in fences(page) if language == "yaml")
        (tmp_path / "transports.yaml").write_text(text)
        own = read_transports(tmp_path / "transports.yaml").transports["own"]
        assert own.per_day or own.since, page


def test_the_numbers_of_a_new_address_are_a_valid_file(tmp_path):
    (_, text) = [text for language, text in fences("guides/warm-up") if language == "yaml"]
    (tmp_path / "receivers.yaml").write_text(text)
    outlook = read_receivers(tmp_path / "receivers.yaml").receiver_of_key("outlook")
    assert outlook.warm_up == (20, 40, 80, 160, 320, 640, 1280)


@pytest.mark.full
def test_an_unregistered_domain_is_refused_as_the_quick_start_says(runner, tmp_path):
    source = programs("quickstart/python")["python"]
    assert "422 domain_not_registered" in runner.run("python", source, home=tmp_path)


def template_examples() -> list[tuple[str, str]]:
    text = (directory() / "guides" / "templates.md").read_text(encoding="utf-8").partition("## Language")[2]
    lines = re.findall(r"^\| `(.+?)` \| (?:`(.*?)`|nothing) \|", text, re.MULTILINE)
    return [(source.replace("\\|", "|"), result) for source, result in lines]


def test_each_example_of_the_template_language_is_right():
    (data,) = [json.loads(text) for language, text in fences("guides/templates") if language == "json"]
    examples = template_examples()
    assert len(examples) > 20
    for source, result in examples:
        assert render(compile_template(source), data, mode=RenderMode.HTML).text == result, source


def simulated() -> list[tuple[str, str, str]]:
    text = (directory() / "guides" / "simulator.md").read_text(encoding="utf-8")
    lines = re.findall(
        r"^\| (?:`(\w+@simulator\.example)`|every other address.*?) \| (.+) \| `(\w+)` \|$", text, re.MULTILINE
    )
    return [(address or "nobody@simulator.example", events, status) for address, events, status in lines]


@pytest.mark.full
def test_each_address_of_the_simulator_behaves_as_documented(stack):
    assert len(simulated()) == 9
    sent = {row: stack.send(to=row[0]).body["id"] for row in simulated()}

    def timeline(email: str) -> list[dict[str, Any]]:
        found = stack.call("GET", f"/emails/{email}/events").body["data"]
        return [event for event in found if event["eventType"] != "queued"]

    for (address, events, status), email in sent.items():
        expected = re.findall(r"`([a-z]+)`", events.replace("`deferred` twice", "`deferred`, `deferred`"))
        expected = [name for name in expected if name not in {"unknown_user", "expired", "greylisted"}]
        arrived = partial(lambda email, count: len(timeline(email)) >= count, email, len(expected))
        wait_for(arrived, seconds=90, what=f"{expected} of {address}")
        assert [event["eventType"] for event in timeline(email)] == expected, address
        assert stack.call("GET", f"/emails/{email}").body["status"] == status, address
        reasons = {event["payload"].get("reason") for event in timeline(email)}
        assert {*re.findall(r"reason `(\w+)`", events)} <= reasons, address
