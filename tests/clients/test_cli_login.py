"""`postrider login`, the global options, and errors of the program."""

import json

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
    profiles = json.loads((bare_cli.home / "config/postrider/profiles.json").read_text())
    assert list(profiles) == ["default", "staging"]


def test_login_stores_no_invalid_key(bare_cli, service):
    result = bare_cli.run("login", "--url", service.stack.url, stdin="pr_wrong\n")
    assert (result.code, result.output) == (3, "")
    assert result.errors.count("\n") == 1
    assert "Run `postrider login`" in result.errors
    assert "pr_wrong" not in result.errors
    assert not (bare_cli.home / "config").exists()


def test_the_key_of_a_profile_is_not_sent_to_another_url(bare_cli, service):
    bare_cli.run("login", "--url", service.stack.url, stdin=service.stack.key)
    with proxy(service.stack.url) as other:
        result = bare_cli.run("login", "--url", other.url, stdin="\n")
        assert other.seen == []
    assert (result.code, result.output) == (1, "")


def test_a_readable_file_of_keys_is_refused(bare_cli, service):
    bare_cli.run("login", "--url", service.stack.url, stdin=service.stack.key)
    path = bare_cli.home / "config/postrider/profiles.json"
    path.chmod(0o644)
    result = bare_cli.run("login", "--url", service.stack.url, stdin=service.stack.key)
    assert (result.code, f"chmod 600 {path}" in result.errors) == (1, True)


@pytest.mark.parametrize("text", ["{", "[1]", '{"default": {}}'])
def test_an_invalid_file_of_keys_is_one_line(bare_cli, text):
    path = bare_cli.home / "config/postrider/profiles.json"
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    path.write_text(text)
    result = bare_cli.run("emails", "list")
    assert (result.code, result.errors.count("\n"), "is not valid" in result.errors) == (1, 1, True)


@pytest.mark.parametrize("key", ["pr_secret\nx", "pr_secret x", "pr_secr€t"])
def test_a_key_that_no_header_can_contain_is_not_shown(cli, key):
    result = cli.run("emails", "list", POSTRIDER_API_KEY=key)
    assert (result.code, result.errors.count("\n"), "pr_secr" in result.errors) == (1, 1, False)


def test_an_invalid_url_is_one_line(cli):
    result = cli.run("emails", "list", "--url", "http://[")
    assert (result.code, result.errors.count("\n"), "is not a URL" in result.errors) == (1, 1, True)


@pytest.mark.parametrize("is_listening", [True, False])
def test_a_failing_service_is_one_line_and_exit_code_7(bare_cli, service, is_listening):
    with proxy(service.stack.url, *[Answer(503)] * 9) as server:
        url = server.url if is_listening else "http://127.0.0.1:1"
        result = bare_cli.run("login", "--url", url, stdin="pr_x")
    assert (result.code, result.errors.count("\n"), result.output) == (7, 1, "")


def test_wrong_usage_is_one_line_with_a_hint(bare_cli):
    for arguments in (["login", "--nonsense"], ["nonsense"], ["completion", "tcsh"]):
        result = bare_cli.run(*arguments)
        assert (result.code, result.errors.count("\n")) == (2, 1)
        assert "--help`" in result.errors


def test_help_is_shown_without_arguments_and_lists_global_options(bare_cli):
    result = bare_cli.run()
    assert (result.code, "Global options:" in result.errors) == (2, True)
    assert "--profile" in bare_cli.run("login", "-h").output


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands(bare_cli, shell):
    assert "_POSTRIDER_COMPLETE" in bare_cli.run("completion", shell).output
    words = {"COMP_WORDS": "postrider lo", "COMP_CWORD": "1" if shell != "fish" else "lo"}
    completed = bare_cli.run(_POSTRIDER_COMPLETE=f"{shell}_complete", **words)
    assert "login" in completed.output
