"""`postrider login`, the global options, and errors of the program."""

import json
from uuid import uuid4

import pytest

from tests.clients.faulty import Answer, proxy

pytestmark = pytest.mark.stack


def test_login_stores_a_valid_key_that_only_the_user_can_read(bare_cli, service):
    key = service.stack.key
    with bare_cli.terminal("login") as terminal:
        terminal.wait_for("URL of the service")
        terminal.type(f"{service.stack.url}/\n")
        terminal.wait_for("API key")
        terminal.type(f"{key}\n")
        screen = terminal.finish()
    assert terminal.code == 0
    assert "is stored as profile default" in screen
    assert key not in screen
    path = bare_cli.home / "config/postrider/profiles.json"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert json.loads(path.read_text()) == {"default": {"url": service.stack.url, "apiKey": key}}


def test_login_reads_the_key_from_standard_input_and_keeps_other_profiles(bare_cli, service):
    url, key = service.stack.url, service.stack.key
    for profile in ("default", "staging"):
        answer = bare_cli.run("login", "--url", url, "--profile", profile, stdin=f"{key}\n").json
        assert (answer["profile"], answer["key"]["scope"]) == (profile, "full_access")
        assert key not in json.dumps(answer)
    path = bare_cli.home / "config/postrider/profiles.json"
    assert list(json.loads(path.read_text())) == ["default", "staging"]
    # The key of a profile is not sent to another URL.
    with proxy(url) as other:
        result = bare_cli.run("login", "--url", other.url, stdin="\n")
        assert (result.code, result.output, other.seen) == (1, "", [])
    path.chmod(0o644)
    result = bare_cli.run("login", "--url", url, stdin=key)
    assert (result.code, f"chmod 600 {path}" in result.errors) == (1, True)


def test_login_stores_no_invalid_key(bare_cli, service):
    result = bare_cli.run("login", "--url", service.stack.url, stdin="pr_wrong\n")
    assert (result.code, result.output) == (3, "")
    assert result.errors.count("\n") == 1
    assert "Run `postrider login`" in result.errors
    assert "pr_wrong" not in result.errors
    assert not (bare_cli.home / "config").exists()


def test_an_invalid_file_of_keys_is_one_line(bare_cli):
    path = bare_cli.home / "config/postrider/profiles.json"
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    for text in ("{", "[1]", '{"default": {}}'):
        path.write_text(text)
        result = bare_cli.run("emails", "list")
        assert (result.code, result.errors.count("\n"), "is not valid" in result.errors) == (1, 1, True), text


def test_an_invalid_key_or_url_is_one_line_without_the_key(cli):
    for key in ("pr_secret\nx", "pr_secret x", "pr_secr€t"):
        result = cli.run("emails", "list", POSTRIDER_API_KEY=key)
        assert (result.code, result.errors.count("\n"), "pr_secr" in result.errors) == (1, 1, False), key
    result = cli.run("emails", "list", "--url", "http://[")
    assert (result.code, result.errors.count("\n"), "is not a URL" in result.errors) == (1, 1, True)


def test_a_failing_service_is_one_line_and_exit_code_7(bare_cli, service):
    with proxy(service.stack.url, *[Answer(503, {"Retry-After": "0"})] * 9) as server:
        result = bare_cli.run("login", "--url", server.url, stdin="pr_x")
    assert (result.code, result.errors.count("\n"), result.output, len(server.seen)) == (7, 1, "", 4)


def test_wrong_usage_is_one_line_with_a_hint(bare_cli):
    for arguments in (["login", "--nonsense"], ["nonsense"], ["completion", "tcsh"]):
        result = bare_cli.run(*arguments)
        assert (result.code, result.errors.count("\n")) == (2, 1)
        assert "--help`" in result.errors


def test_help_is_shown_without_arguments_and_lists_global_options(bare_cli):
    result = bare_cli.run()
    assert (result.code, "Global options:" in result.errors) == (2, True)
    assert "--profile" in bare_cli.run("login", "-h").output


def test_a_shell_completes_commands(bare_cli):
    for shell in ("bash", "zsh", "fish"):
        assert "_POSTRIDER_COMPLETE" in bare_cli.run("completion", shell).output, shell
        words = {"COMP_WORDS": "postrider lo", "COMP_CWORD": "1" if shell != "fish" else "lo"}
        completed = bare_cli.process(_POSTRIDER_COMPLETE=f"{shell}_complete", **words)
        assert "login" in completed.output, shell


def test_the_program_ends_with_the_documented_exit_codes(cli, service, tmp_path):
    address = f"{uuid4()}@example.com"
    send = ("send", "--from", "hello@demo.example", "--to", address, "--subject", "Grüße")
    (tmp_path / "postrider.yaml").write_text("templates:\n  - {alias: new, name: N, subject: S, htmlContent: H}\n")
    spent = (*send, "--from", "hello@exhausted.example", "--text", "Hi", "--api-key", service.spent_key)
    commands = {
        0: (*send, "--dry-run"),
        1: ("apply", "-f", "absent.yaml"),
        2: ("emails", "show"),
        3: ("emails", "list", "--api-key", "pr_wrong"),
        4: ("emails", "show", "0Uf8c5MnBvCxZaSdFgHjKl"),
        5: (*send, "--template", "no-such-template"),
        6: spent,
        7: ("emails", "list", "--url", "http://127.0.0.1:1"),
        8: ("apply", "--dry-run"),
    }
    results = {code: cli.process(*arguments, stdin="Straße\n") for code, arguments in commands.items()}
    assert {code: result.code for code, result in results.items()} == {code: code for code in commands}
    # Input and output are UTF-8.
    assert (results[0].json["subject"], results[0].json["text"]) == ("Grüße", "Straße\n")
    assert "Grüße" in results[0].output
    assert {code: result.errors.count("\n") for code, result in results.items()} == {
        code: int(code not in {0, 8}) for code in commands
    }
