"""Cluster files of the embedded PostgreSQL, created once, checked at every start, never overwritten."""

import os
import secrets
import shutil
import subprocess
from pathlib import Path

from tools.embedded.errors import CannotStart
from tools.embedded.locations import write_private
from tools.embedded.processes.processes import has_exited
from tools.embedded.servers.accounts import SystemAccount
from tools.embedded.servers.binaries import PostgresBinaries

# The fallback is for systems without C.UTF-8, such as older macOS.
LOCALES = ("C.UTF-8", "C")
PASSWORD_FILE = "postrider.password"  # noqa: S105 - a name
# Only the service's role can connect, with its password; the superuser cannot connect at all.
HBA = "host all postrider 127.0.0.1/32 scram-sha-256\n"
ROLE = "postrider"
DATABASE = "postrider"


def cluster_in(server_directory: Path) -> Path:
    """Return the path of the cluster in a server directory."""
    return server_directory / "postgres"


def read_major(cluster: Path) -> int | None:
    """Return the major version that created the cluster, None when there is no cluster yet.

    Raises CannotStart when the directory has files but is not a complete cluster.
    """
    if not cluster.exists() or not any(cluster.iterdir()):
        return None
    for name in ("PG_VERSION", "global/pg_control", PASSWORD_FILE):
        if not (cluster / name).exists():
            raise CannotStart(
                f"{cluster} is not a complete database (missing {name}) and was not changed."
                " Restore it from a backup, or set another DATA_DIR."
            )
    version = (cluster / "PG_VERSION").read_text().strip()
    if not version.isdigit():
        raise CannotStart(
            f"{cluster}/PG_VERSION contains {version!r}, which is not a version. Restore it from a backup."
        )
    return int(version)


def read_password(cluster: Path) -> str:
    """Return the password of the service's role."""
    return (cluster / PASSWORD_FILE).read_text().strip()


def create_cluster(cluster: Path, *, binaries: PostgresBinaries, account: SystemAccount, durable: bool) -> None:
    """Initialise a cluster next to its path and rename it when it is complete.

    durable: whether to sync to disk; a throw-away cluster need not.
    """
    for leftover in cluster.parent.glob(f"{cluster.name}.unfinished-*"):
        shutil.rmtree(leftover)
    unfinished = cluster.with_name(f"{cluster.name}.unfinished-{os.getpid()}")
    unfinished.mkdir(mode=0o700)
    account.give_ownership(unfinished)
    _run_initdb(unfinished, binaries=binaries, account=account, sync=[] if durable else ["--no-sync"])
    password = secrets.token_hex(24)
    _create_role(unfinished, binaries=binaries, account=account, password=password)
    (unfinished / "pg_hba.conf").write_text(HBA)
    write_private(unfinished / PASSWORD_FILE, f"{password}\n")
    account.give_ownership(unfinished / PASSWORD_FILE)
    unfinished.rename(cluster)


def refuse_running_cluster(cluster: Path) -> None:
    """Raise CannotStart when a server runs on the cluster; remove a stale postmaster.pid.

    After a crash of the machine, the pid in postmaster.pid may belong to another process of the same user;
    PostgreSQL would then never start.
    """
    pid_file = cluster / "postmaster.pid"
    pid = read_server_pid(cluster)
    if pid is None or has_exited(pid):
        return  # PostgreSQL itself removes the file of a dead server
    if is_served_by(cluster, pid):
        raise CannotStart(
            f"A PostgreSQL server (process {pid}) is already running on {cluster}."
            f" Stop it with `kill -INT {pid}` and try again."
        )
    pid_file.unlink(missing_ok=True)


def read_server_pid(cluster: Path) -> int | None:
    """Return the pid in postmaster.pid, of a running or a dead process."""
    try:
        first = (cluster / "postmaster.pid").read_text().split("\n", 1)[0]
    except FileNotFoundError:
        return None
    return int(first) if first.strip().isdigit() else None


def is_ready(cluster: Path, pid: int) -> bool:
    """Return whether the server accepts connections, according to postmaster.pid (as pg_ctl does)."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return False
    return lines[:1] == [str(pid)] and [line.strip() for line in lines[7:8]] == ["ready"]


def server_environment() -> dict[str, str]:
    """Return a clean environment, so that the caller's PG* variables do not affect the server."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", "TZ": "UTC"}


def is_served_by(cluster: Path, pid: int) -> bool:
    """Return whether the process is a server that runs on the cluster."""
    if pid != read_server_pid(cluster) or has_exited(pid):
        return False
    if not Path("/proc/self").exists():
        return True
    try:
        # The working directory of a server is its cluster.
        return Path(f"/proc/{pid}/cwd").resolve(strict=True) == cluster.resolve()
    except OSError:
        return False


def _run_initdb(cluster: Path, *, binaries: PostgresBinaries, account: SystemAccount, sync: list[str]) -> None:
    error = ""
    options = ["--username=postgres", "--auth=reject", "--encoding=UTF8", "--no-instructions", *sync]
    for locale in LOCALES:
        command = [binaries.program("initdb"), f"--pgdata={cluster}", f"--locale={locale}", *options]
        done = _run_as(account, command)
        if done.returncode == 0:
            return
        error = done.stderr.strip()
    raise CannotStart(f"initdb could not create a database in {cluster.parent}: {error}")


def _create_role(cluster: Path, *, binaries: PostgresBinaries, account: SystemAccount, password: str) -> None:
    """Create the role and its database in single-user mode, before the server accepts connections."""
    statements = f"CREATE ROLE {ROLE} LOGIN CREATEDB PASSWORD '{password}'\nCREATE DATABASE {DATABASE} OWNER {ROLE}\n"
    command = [binaries.program("postgres"), "--single", "-D", str(cluster)]
    command += ["-c", "exit_on_error=true", "-c", "log_min_messages=fatal", "postgres"]
    done = _run_as(account, command, stdin=statements)
    if done.returncode != 0:
        raise CannotStart(f"PostgreSQL could not create the role {ROLE}: {done.stderr.strip()}")


def _run_as(account: SystemAccount, command: list[str], *, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        input=stdin,
        env=server_environment(),
        cwd="/",
        **account.popen_options,
    )
