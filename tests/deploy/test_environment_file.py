"""deploy/make-env writes an environment file that a shell and compose read alike; test_debian.py adds systemd."""

import json
import stat
import subprocess
import sys

import pytest
from dotenv import dotenv_values

from tests.config.test_start import start
from tests.deploy.debian import run
from tests.stack.stack import REPOSITORY

MAKE_ENV = REPOSITORY / "deploy" / "make-env"
EXAMPLE = REPOSITORY / ".env.example"
PRINT = "import json, os; print(json.dumps(dict(os.environ)))"
AWKWARD = {
    "SYSTEM_FROM": 'Example "Mail" & Co. <no-reply@example.com>',
    "SMTP_URL": "smtp://user:p$HOME`id`#%40!|@relay.example.com:587",
    "SPF_MECHANISMS": "include:_spf.example.com ip4:192.0.2.0/24",
    "DMARC_RUA": "",
    "ANYMAIL_POSTMARK_SERVER_TOKEN": "$(id) ~ * ;",
}


def read_by_compose(file):
    # The parser of podman-compose.
    return {name: value or "" for name, value in dotenv_values(file).items()}


def read_by_a_shell(file):
    script = f'set -a; . {file}; exec "$@"'
    return json.loads(run("env", "-i", "/bin/sh", "-c", script, "sh", sys.executable, "-c", PRINT))


def make_env(path, **settings):
    run(MAKE_ENV, path, "mail.example.com", *(f"{name}={value}" for name, value in settings.items()))
    return path


@pytest.fixture
def file(tmp_path):
    return make_env(tmp_path / "env", **AWKWARD)


def test_all_readers_see_the_given_values(file):
    for values in (read_by_compose(file), read_by_a_shell(file)):
        assert {name: values[name] for name in AWKWARD} == AWKWARD


def test_a_shell_and_compose_read_every_line_alike(file):
    shell = read_by_a_shell(file)
    assert {name: shell[name] for name in read_by_compose(file)} == read_by_compose(file)


def test_the_example_is_read_alike():
    shell, compose = read_by_a_shell(EXAMPLE), read_by_compose(EXAMPLE)
    assert {name: shell[name] for name in compose} == compose
    assert compose["RATE_LIMIT"] == "50/s burst 100"


def test_the_file_has_every_setting_and_starts_the_service(tmp_path):
    values = read_by_compose(make_env(tmp_path / "env"))
    assert set(values) == {*read_by_compose(EXAMPLE), "POSTGRES_PASSWORD"}
    assert values["POSTGRES_PASSWORD"] in values["DATABASE_URL"]
    run_check = start(**values)
    assert run_check.returncode == 0, run_check.stderr


def test_secrets_are_random_and_the_file_is_private(tmp_path):
    first, second = (read_by_compose(make_env(tmp_path / name)) for name in ("first", "second"))
    secret = ("SECRET_KEY", "APP_KEYS", "METRICS_TOKEN", "POSTGRES_PASSWORD")
    assert all(first[name] != second[name] for name in secret)
    assert stat.S_IMODE((tmp_path / "first").stat().st_mode) == 0o600


REFUSED = [
    ("SECRET_KEYS=x", "there is no setting SECRET_KEYS"),
    ("SYSTEM_FROM=O'Hara <a@example.com>", "SYSTEM_FROM: the readers of this file disagree"),
    ("SMTP_URL=smtp://a\\b@c", "SMTP_URL: the readers of this file disagree"),
]


def test_a_setting_that_cannot_be_written_is_refused(tmp_path):
    for setting, message in REFUSED:
        command = [MAKE_ENV, tmp_path / "env", "mail.example.com", setting]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert (done.returncode, message in done.stderr) == (64, True), setting
        assert list(tmp_path.iterdir()) == [], setting


def test_an_existing_file_is_never_replaced(file):
    before = file.read_bytes()
    done = subprocess.run([MAKE_ENV, file, "mail.example.com"], capture_output=True, text=True, check=False)
    assert done.returncode == 64
    assert file.read_bytes() == before
