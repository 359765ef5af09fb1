"""The files of the embedded PostgreSQL: made once, checked at every start, never overwritten."""

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from embedded.errors import CannotStart
from embedded.locations import write_private
from embedded.processes.processes import is_gone
from embedded.servers.accounts import Account
from embedded.servers.binaries import Postgres

# The second is for systems without C.UTF-8, such as older macOS.
LOCALES = ("C.UTF-8", "C")
PASSWORD_FILE = "postrider.password"  # noqa: S105 - a name
# Only the service's own role gets in, with its password; the superuser has no way in at all.
HBA = "host all postrider 127.0.0.1/32 scram-sha-256\n"
ROLE = "postrider"
DATABASE = "postrider"


def cluster_in(home: Path) -> Path:
    """Return where the cluster of a home lies."""
    return home / "postgres"


def read_major(cluster: Path) -> int | None:
    """Return the major version that made the cluster, None when there is no cluster yet.

    Raises CannotStart when something is there that is not a whole cluster.
    """
    if not cluster.exists() or not any(cluster.iterdir()):
        return None
    for name in ("PG_VERSION", "global/pg_control", PASSWORD_FILE):
        if not (cluster / name).exists():
            raise CannotStart(
                f"{cluster} is not a whole database (it lacks {name}) and is left as it is:"
                " restore it from a copy, or set DATA_DIR to another place."
            )
    version = (cluster / "PG_VERSION").read_text().strip()
    if not version.isdigit():
        raise CannotStart(f"{cluster}/PG_VERSION says {version!r}, which is no version: restore it.")
    return int(version)


def read_password(cluster: Path) -> str:
    """Return the password of the service's role."""
    return (cluster / PASSWORD_FILE).read_text().strip()


def make_cluster(cluster: Path, *, binaries: Postgres, account: Account, durable: bool) -> None:
    """Initialise a cluster beside its place and move it there when it is whole.

    durable: whether to wait for the disk; a throw-away cluster need not.
    """
    for leftover in cluster.parent.glob(f"{cluster.name}.unfinished-*"):
        shutil.rmtree(leftover)
    unfinished = cluster.with_name(f"{cluster.name}.unfinished-{os.getpid()}")
    unfinished.mkdir(mode=0o700)
    account.take(unfinished)
    _run_initdb(unfinished, binaries=binaries, account=account, sync=[] if durable else ["--no-sync"])
    password = secrets.token_hex(24)
    _create_role(unfinished, binaries=binaries, account=account, password=password)
    (unfinished / "pg_hba.conf").write_text(HBA)
    _write_password(unfinished / PASSWORD_FILE, password, account)
    unfinished.rename(cluster)


def refuse_if_live(cluster: Path) -> None:
    """Raise CannotStart when a server runs on the cluster; remove a mark that names a stranger.

    After a crash of the machine, the number in postmaster.pid may belong to another process of
    the same user; PostgreSQL would then refuse to start for good.
    """
    mark = cluster / "postmaster.pid"
    pid = read_server_pid(cluster)
    if pid is None or is_gone(pid):
        return  # PostgreSQL itself clears up after a server that is gone
    if is_served_by(cluster, pid):
        raise CannotStart(
            f"A PostgreSQL server (process {pid}) already runs on {cluster}:"
            f" end it with `kill -INT {pid}` and start again."
        )
    mark.unlink(missing_ok=True)


def read_server_pid(cluster: Path) -> int | None:
    """Return the process that the cluster's mark names, dead or alive."""
    try:
        first = (cluster / "postmaster.pid").read_text().split("\n", 1)[0]
    except FileNotFoundError:
        return None
    return int(first) if first.strip().isdigit() else None


def is_ready(cluster: Path, pid: int) -> bool:
    """Say whether the server takes connections: it writes so into its mark (as pg_ctl reads it)."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return lines[:1] == [str(pid)] and [word.strip() for word in lines[7:8]] == ["ready"]


def server_environment() -> dict[str, str]:
    """Return a clean environment: none of the caller's PG* settings may bend the server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def is_served_by(cluster: Path, pid: int) -> bool:
    """Say whether the process is a server that runs on the cluster."""
    if pid != read_server_pid(cluster) or is_gone(pid):
        return False
    if not Path("/proc/self").exists():
        return True
    try:
        # A server works in its cluster.
        return Path(f"/proc/{pid}/cwd").resolve(strict=True) == cluster.resolve()
    except OSError:
        return False


def _run_initdb(cluster: Path, *, binaries: Postgres, account: Account, sync: list[str]) -> None:
    problem = ""
    options = [
        "--username=postgres",
        "--auth=reject",
        "--encoding=UTF8",
        "--no-instructions",
        *sync,
    ]
    for locale in LOCALES:
        command = [
            binaries.program("initdb"),
            f"--pgdata={cluster}",
            f"--locale={locale}",
            *options,
        ]
        done = _run_as(account, command)
        if done.returncode == 0:
            return
        problem = done.stderr.strip()
    raise CannotStart(f"initdb could not make a database in {cluster.parent}: {problem}")


def _create_role(cluster: Path, *, binaries: Postgres, account: Account, password: str) -> None:
    """Create the role and its database in single-user mode, before any door is open."""
    statements = f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{password}'\nCREATE DATABASE {DATABASE} OWNER {ROLE}\n"
    command = [binaries.program("postgres"), "--single", "-D", str(cluster)]
    command += ["-c", "exit_on_error=true", "-c", "log_min_messages=fatal", "postgres"]
    done = _run_as(account, command, stdin=statements)
    if done.returncode != 0:
        raise CannotStart(f"PostgreSQL could not create the role {ROLE}: {done.stderr.strip()}")


def _run_as(account: Account, command: list[str], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        input=stdin,
        env=server_environment(),
        cwd="/",
        **account.popen_arguments,
    )


def _write_password(path: Path, password: str, account: Account) -> None:
    write_private(path, password + "\n")
    account.take(path)
