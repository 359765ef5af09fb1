"""Postfix with OpenDKIM, and Haraka with its dkim plugin: accept, sign, queue on disk, and deliver to a sink."""

import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.peers.messages import SELECTOR, SENDER, SENDER_DOMAIN, MessageFiles
from benchmarks.peers.received import ReceivedMail
from tests.stack.stack import free_port, wait_for
from tests.standards.postfix import Postfix
from tests.standards.tools import DEBIAN, program

HARAKA_PROCESSES = 2
INJECT_SECONDS = 600
RELAY_PLUGIN = Path(__file__).with_name("haraka_relay.js")
OPENDKIM = """\
Mode s
Domain {domain}
Selector {selector}
KeyFile {key}
Socket inet:{port}@127.0.0.1
Canonicalization relaxed/relaxed
SignatureAlgorithm rsa-sha256
OversignHeaders From
Background no
RequireSafeKeys no
Syslog no
"""


def measure_mail_server(port: int, files: MessageFiles, received: ReceivedMail, *, count: int, callers: int) -> float:
    """Return messages per second from the first connection of smtp-source to the last message at the sink."""
    smtp_source = program("smtp-source", package="postfix")
    options = ["-s", str(callers), "-m", str(count), "-F", str(files.message), "-f", SENDER, "-t", "u@example.com"]
    started = time.perf_counter()
    subprocess.run([smtp_source, *options, f"127.0.0.1:{port}"], check=True, timeout=INJECT_SECONDS)
    received.wait_until(count)
    seconds = time.perf_counter() - started
    received.take(count)
    return count / seconds


@contextmanager
def postfix_with_opendkim(files: MessageFiles, *, sink_port: int) -> Iterator[int]:
    """Yield the port of a Postfix that signs through OpenDKIM and relays to a sink."""
    milter = free_port()
    configuration = files.directory / "opendkim.conf"
    fields = {"domain": SENDER_DOMAIN, "selector": SELECTOR, "key": files.private_key, "port": milter}
    configuration.write_text(OPENDKIM.format(**fields))
    command = [program("opendkim", package="opendkim"), "-f", "-x", str(configuration)]
    settings = {"smtpd_milters": f"inet:127.0.0.1:{milter}", "milter_default_action": "tempfail"}
    with running(command, port=milter), Postfix(routes={"*": sink_port}, settings=settings) as postfix:
        yield postfix.port


@contextmanager
def haraka(files: MessageFiles, *, sink_port: int) -> Iterator[int]:
    """Yield the port of a Haraka with two processes that signs and relays to a sink."""
    directory, port = files.directory / "haraka", free_port()
    texts = {
        "plugins": "dkim\nsink_relay",
        "outbound.ini": "enable_tls=false\nlocal_mx_ok=true",
        "sink.json": json.dumps({"port": sink_port}),
        "dkim.ini": "[sign]\nenabled=true\n[canon]\nbody=relaxed\n[verify]\nenabled=false",
        f"dkim/{SENDER_DOMAIN}/selector": SELECTOR,
        f"dkim/{SENDER_DOMAIN}/private": files.private_key.read_text(),
    }
    command = install_haraka(directory, ["haraka-plugin-dkim"], RELAY_PLUGIN, texts=texts, port=port)
    with running(command, port=port):
        yield port


def install_haraka(
    directory: Path, modules: Sequence[str], plugin: Path, *, texts: Mapping[str, str], port: int
) -> list[str]:
    """Install a Haraka with plugins of npm and one of ours, and return the command that starts it.

    texts: the files of its configuration, by their paths in it.
    """
    npm, node = program("npm", package="npm"), program("node", package="nodejs")
    options = ["--prefix", str(directory), "--ignore-scripts", "--no-audit", "--no-fund"]
    directory.mkdir()
    subprocess.run([npm, "install", *options, "Haraka", *modules], check=True, capture_output=True, env=DEBIAN)
    config = directory / "config"
    shutil.copytree(directory / "node_modules/Haraka/config", config)
    (directory / "plugins").mkdir()
    shutil.copy(plugin, directory / "plugins" / plugin.name.removeprefix("haraka_"))
    common = {
        "me": "haraka.example",
        "smtp.ini": f"listen=127.0.0.1:{port}\nnodes={HARAKA_PROCESSES}",
        "log.ini": "level=error",
    }
    for name, text in {**common, **texts}.items():
        path = config / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return [node, str(directory / "node_modules/Haraka/bin/haraka"), "-c", str(directory)]


@contextmanager
def running(command: Sequence[str], *, port: int, **variables: str) -> Iterator[int]:
    """Run a server that listens on a port, with all processes that it starts. Yields the id of the first."""
    process = subprocess.Popen(
        command, start_new_session=True, stdout=subprocess.DEVNULL, env={**os.environ, **variables}
    )
    try:
        wait_for(lambda: _listens(port), seconds=300, what=f"{command[0]} listens")
        yield process.pid
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
