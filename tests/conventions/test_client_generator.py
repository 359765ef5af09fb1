"""The generated parts of the client libraries (clients/generator): complete, marked, and laid out as written ones."""

import dataclasses
import subprocess
import sys
from importlib import import_module

import pytest

from tests.stack.stack import REPOSITORY

CLIENTS = REPOSITORY / "clients"
# Names of the API, sentences of the API that are longer than a line, and classes that are imported to be exported.
CHOSEN_BY_THE_API = "A001,A002,D205,PLC0414"


@pytest.fixture(scope="module")
def generator():
    sys.path.insert(0, str(CLIENTS))
    yield lambda name: import_module(f"generator.{name}")
    sys.path.remove(str(CLIENTS))


@pytest.fixture(scope="module")
def document(generator):
    return generator("document").Document()


@pytest.fixture(scope="module")
def files(generator, document):
    """Return the text of each generated file by its path."""
    sources = {"python": "python/src/postrider_client", "javascript": "javascript/src"}
    return {
        f"clients/{directory}/{name}": text
        for language, directory in sources.items()
        for name, text in generator(language).modules(document)
    }


def test_each_operation_has_a_method(generator, document):
    names = generator("names")
    methods = [method for resources in names.MODULES.values() for one in resources for method in one.methods.values()]
    assert {method.operation for method in methods} | names.BY_HAND == document.operations.keys()


def test_chosen_names_are_those_of_schemas_that_exist(generator, document):
    names, python, javascript = map(generator, ("names", "python", "javascript"))
    for table in (names.ANSWERS, python.ANSWERS, python.INPUTS, javascript.ANSWERS, javascript.INPUTS):
        assert table.keys() <= document.schemas.keys(), table
    assert javascript.FILTERS.keys() <= document.operations.keys()
    assert names.ERRORS.keys() <= {problem.name for problem in document.problems.values()}


def test_no_generated_file_is_committed_and_each_has_the_mark(files):
    listed = subprocess.run(
        ["git", "ls-files", "--", *files], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert listed.stdout == ""
    ignored = subprocess.run(
        ["git", "check-ignore", "--", *files], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert set(ignored.stdout.split()) == set(files)
    assert [path for path, text in files.items() if "Changes are lost." not in text.partition("\n")[0]] == []


def test_generated_python_is_laid_out_as_written_by_hand(files):
    # bin/test has generated the files.
    modules = {REPOSITORY / path: text for path, text in files.items() if path.endswith(".py")}
    assert [path for path, text in modules.items() if path.read_text("utf-8") != text] == []
    for command in (["format", "--check"], ["check", "--extend-ignore", CHOSEN_BY_THE_API]):
        arguments = [sys.executable, "-m", "ruff", *command, "--no-cache", "--no-respect-gitignore", *map(str, modules)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_answers_are_dataclasses_with_the_texts_of_the_api(files):
    text = files["clients/python/src/postrider_client/answers.py"]
    assert (
        'counts: Optional[StreamCounts] = None\n    """Counts of the last 30 UTC days, which include today."""' in text
    )
    answers = import_module("postrider_client.answers")
    fields = {field.name: field for field in dataclasses.fields(answers.Webhook)}
    assert fields["secret"].repr is False
    assert fields["url"].default is dataclasses.MISSING


def test_arguments_and_properties_show_the_texts_of_the_api(files):
    python = files["clients/python/src/postrider_client/streams.py"]
    assert "transport_route: The operator's route of transports, if the workspace may use several; None for" in python
    javascript = files["clients/javascript/src/types.ts"]
    assert "/** Whether the preference page of recipients lists the stream. */\n  public?: boolean;" in javascript


def test_errors_have_the_meaning_and_the_members_of_their_code():
    errors = import_module("postrider_client.errors")
    assert errors.BY_CODE["stream_exists"] is errors.StreamExists
    assert issubclass(errors.ExpiredApiKey, errors.AuthenticationError)
    assert errors.StreamExists.__doc__ == "The workspace has a stream with this id."
    problem = {"detail": "x", "status": 429, "code": "quota_exceeded", "requestId": None, "limit": 7}
    assert errors.QuotaExceeded(problem, headers={}).limit == 7


def test_a_member_that_an_older_service_does_not_have_is_its_default():
    read = import_module("postrider_client.wire").read
    email = read(import_module("postrider_client.inbound_answers").ReceivedEmail, {"id": "inb_x", "text": "Hello"})
    assert (email.id, email.text, email.forwards, email.reply_text, email.raw["id"]) == (
        "inb_x",
        "Hello",
        [],
        None,
        "inb_x",
    )
