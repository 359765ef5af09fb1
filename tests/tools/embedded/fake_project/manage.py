"""Fake manage.py with the commands that the launcher calls."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from core.lib.forking import fork_programs


def migrate() -> None:
    """Insert a row, so that tests can count starts."""
    if "--progress" in sys.argv:
        sys.stderr.write("Migrations: 100 % (1 of 1)\n")
    if "BROKEN_MIGRATION" in os.environ:
        sys.exit("The table exists.")
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS starts (id serial)")
        connection.execute("INSERT INTO starts DEFAULT VALUES")


def collectstatic() -> None:
    """Collect nothing."""


def create_demo() -> None:
    """Print the logins."""
    logins = {"apiKey": "pr_fake", "from": "Demo <hello@demo.example>"}
    logins |= {"dashboardEmail": "demo@demo.example", "dashboardPassword": "it's secret"}
    sys.stdout.write(json.dumps(logins | {"staffEmail": "staff@demo.example", "staffPassword": "s"}))


def serve() -> None:
    """Run a web server that forks, and a worker."""
    import config.wsgi  # noqa: F401 - a faulty application must not start

    if program := fork_programs({"web": web, "worker": worker}):
        program()


def web() -> None:
    """Run gunicorn."""
    os.execv(sys.executable, [sys.executable, "-m", "gunicorn", "-c", "config/gunicorn.py", "config.wsgi"])


def worker() -> None:
    """Run forever, with a child that does not notice the exit of its parent."""
    subprocess.Popen(["sleep", "1000"])
    if "STUBBORN" in os.environ:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while True:
        time.sleep(1000)


def count() -> None:
    """Print the number of migrate runs."""
    with psycopg.connect(os.environ["DATABASE_URL"]) as connection:
        sys.stdout.write("{}\n".format(*connection.execute("SELECT count(*) FROM starts").fetchone()))


def count_slowly() -> None:
    """Print a line, wait for the end of standard input, then count."""
    sys.stdout.write("counting\n")
    sys.stdout.flush()
    sys.stdin.read()
    count()


def show() -> None:
    """Print the settings that the launcher passes."""
    names = ("MODE", "DATA_DIR", "PORT", "PUBLIC_URL", "SECRET_KEY", "APP_KEYS", "INBOX_PORT", "INBOUND_PORT")
    sys.stdout.write(json.dumps({name: os.environ[name] for name in names} | {"here": str(Path.cwd())}))


def show_secrets() -> None:
    """Print the secrets in the form in which they are given."""
    _show_given("SECRET_KEY", "APP_KEYS")


def show_urls() -> None:
    """Print the URLs of the servers in the form in which they are given."""
    _show_given("DATABASE_URL", "REDIS_URL")


def _show_given(*names: str) -> None:
    forms = [*names, *(f"{name}_FILE" for name in names)]
    sys.stdout.write(json.dumps({form: os.environ[form] for form in forms if form in os.environ}))


def shout() -> None:
    """Print standard input in capitals and exit with code 7."""
    sys.stdout.write(sys.stdin.read().upper())
    sys.exit(7)


COMMANDS = (migrate, collectstatic, create_demo, serve, count, count_slowly, show, show_secrets, show_urls, shout)

if __name__ == "__main__":
    {command.__name__: command for command in COMMANDS}[sys.argv[1]]()
