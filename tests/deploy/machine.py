"""A minimal Debian machine with systemd as its first process, in namespaces, next to an Internet that is a process.

The machine's network leads to `tests.deploy.internet` only, which answers DNS queries and receives mail.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.deploy.debian import pip_configuration, pip_directories, root_archive, run
from tests.stack.stack import REPOSITORY, wait_for

# Addresses that are public for the guard of outbound connections; no packet leaves the two network namespaces.
MACHINE, INTERNET = "11.0.0.1", "11.0.0.2"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PACKAGES = ("systemd-sysv", "dbus", "ca-certificates")
# As systemd-nspawn prepares a container: /sys is read-only, so that udev does not start, and the only hierarchy of
# control groups is the unified one.
BOOT = """
set -e
mount --make-rprivate /
mount --bind "$ROOT" "$ROOT"
for directory in $BOUND; do
    mkdir -p "$ROOT$directory"
    mount --bind -o ro "$directory" "$ROOT$directory"
done
mount -t proc proc "$ROOT/proc"
mount -t sysfs -o ro sysfs "$ROOT/sys"
mount -t cgroup2 cgroup2 "$ROOT/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$ROOT/dev"
mkdir "$ROOT/dev/pts" "$ROOT/dev/shm"
for device in null zero full random urandom tty; do
    touch "$ROOT/dev/$device"
    mount --bind "/dev/$device" "$ROOT/dev/$device"
done
ln -s /proc/self/fd "$ROOT/dev/fd"
ln -s pts/ptmx "$ROOT/dev/ptmx"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$ROOT/dev/pts"
mount -t tmpfs tmpfs "$ROOT/dev/shm"
mount -t tmpfs tmpfs "$ROOT/run"
ip link set lo up
cd "$ROOT"
mkdir -p old
pivot_root . old
umount -l /old
exec env -i container=test PATH=/usr/sbin:/usr/bin:/sbin:/bin \\
    /lib/systemd/systemd --system systemd.unified_cgroup_hierarchy=1
"""

ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "DEBIAN_FRONTEND": "noninteractive",
}


@dataclass
class Machine:
    """root: its files. pid: of its first process."""

    root: Path
    pid: int

    def run(self, script: str, *, with_network_of_host: bool = False) -> str:
        """Run a script as root on the machine; return its output."""
        namespaces = ["--mount", "--uts", "--ipc", "--pid", "--cgroup", *([] if with_network_of_host else ["--net"])]
        return run("nsenter", f"--target={self.pid}", *namespaces, "bash", "-c", script, env=ENVIRONMENT)

    def is_running(self) -> bool:
        with suppress(AssertionError):
            return self.run("systemctl is-system-running").strip() == "running"
        return False


@dataclass
class Internet:
    """The process of `tests.deploy.internet`. mail: the directory for the messages it receives."""

    process: "subprocess.Popen[str]"
    mail: Path

    def publish(self, zones: dict[str, dict[str, list[str]]]) -> None:
        assert self.process.stdin
        print(json.dumps(zones), file=self.process.stdin, flush=True)

    def messages(self) -> list[bytes]:
        return [path.read_bytes() for path in sorted(self.mail.glob("*.eml"))]


@contextmanager
def machine_and_internet(directory: Path) -> Iterator[tuple[Machine, Internet]]:
    """Boot a machine from a fresh Debian; both ends of its network are set up."""
    root = directory / "root"
    root.mkdir()
    run("tar", "-x", "-f", root_archive("minbase", *PACKAGES), "-C", root)
    (root / "etc/pip.conf").write_text(pip_configuration())
    # The machine trusts the same authorities, for a proxy between this machine and the package index.
    shutil.copy(CERTIFICATES, root / "usr/local/share/ca-certificates/host.crt")
    (root / "etc/resolv.conf").write_text(Path("/etc/resolv.conf").read_text())
    with ExitStack() as stack:
        internet = stack.enter_context(started_internet(directory / "mail"))
        machine = stack.enter_context(booted(root))
        connect(machine.pid, internet.process.pid)
        wait_for(machine.is_running, seconds=60, what="the machine has started")
        yield machine, internet


@contextmanager
def booted(root: Path) -> Iterator[Machine]:
    bound = " ".join(str(path) for path in pip_directories() if path.parts[1] != "etc")
    namespaces = ["--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup", "--fork", "--kill-child"]
    with (root.parent / "boot.log").open("wb") as log:
        outer = subprocess.Popen(
            ["unshare", *namespaces, "sh", "-c", BOOT],
            env={**os.environ, "ROOT": str(root), "BOUND": bound}, stdout=log, stderr=log, start_new_session=True,
        )  # fmt: skip
    children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
    try:
        yield Machine(root, int(wait_for(children.read_text, seconds=10, what="the first process")))
    finally:
        # unshare ends the first process of the machine with itself, and the kernel ends all others with that one.
        outer.kill()
        outer.wait()


@contextmanager
def started_internet(mail: Path) -> Iterator[Internet]:
    mail.mkdir()
    command = ["unshare", "--net", sys.executable, "-m", "tests.deploy.internet", mail, INTERNET, name_server_of_host()]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, text=True) as process:
        try:
            yield Internet(process, mail)
        finally:
            process.kill()


def name_server_of_host() -> str:
    rows = [line.split() for line in Path("/etc/resolv.conf").read_text().splitlines()]
    return next(row[1] for row in rows if row[:1] == ["nameserver"])


def connect(machine: int, internet: int) -> None:
    """Connect two network namespaces. The name server has the address that /etc/resolv.conf of the host names."""
    ends = {f"m{machine}": (machine, MACHINE), f"i{internet}": (internet, INTERNET)}
    first, second = ends
    veth = ("type", "veth", "peer", "name", second, "netns", str(internet))
    run("ip", "link", "add", first, "netns", str(machine), *veth)
    for name, (pid, address) in ends.items():
        within(pid, f"ip link set lo up; ip addr add {address}/24 dev {name}; ip link set {name} up")
    within(machine, f"ip route add default via {INTERNET}")
    within(internet, f"ip addr add {name_server_of_host()}/32 dev lo")


def within(pid: int, script: str) -> None:
    run("nsenter", f"--target={pid}", "--net", "sh", "-e", "-c", script)
