"""Postfix with OpenDKIM, and Haraka with its dkim plugin: accept, sign, queue on disk, and deliver to a sink."""

import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.stack.servers import running_server
from tests.stack.stack import free_port, listens
from tests.standards.postfix import Postfix
from tests.standards.tools import npm_modules, program
from tools.benchmarks.peers.messages import SELECTOR, SENDER, SENDER_DOMAIN, MessageFiles
from tools.benchmarks.peers.received import ReceivedMail

HARAKA = ("Haraka@3.3.4", "haraka-plugin-dkim@1.3.1", "haraka-plugin-spf@1.3.0")
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
    opendkim = running_server(command, is_ready=lambda: listens(milter), log=files.directory / "opendkim.log")
    with opendkim, Postfix(routes={"*": sink_port}, settings=settings) as postfix:
        yield postfix.port


@contextmanager
def haraka(files: MessageFiles, *, sink_port: int) -> Iterator[int]:
    """Yield the port of a Haraka with two processes that signs and relays to a sink."""
    directory, port = files.directory / "haraka", free_port()
    texts = {
        "outbound.ini": "enable_tls=false\nlocal_mx_ok=true",
        "sink.json": json.dumps({"port": sink_port}),
        "dkim.ini": "[sign]\nenabled=true\n[canon]\nbody=relaxed\n[verify]\nenabled=false",
        f"dkim/{SENDER_DOMAIN}/selector": SELECTOR,
        f"dkim/{SENDER_DOMAIN}/private": files.private_key.read_text(),
    }
    with running_haraka(directory, ["dkim"], RELAY_PLUGIN, texts=texts, port=port):
        yield port


@contextmanager
def running_haraka(
    directory: Path, plugins: Sequence[str], own: Path, *, texts: Mapping[str, str], port: int, **variables: str
) -> Iterator[int]:
    """Run a Haraka with two processes, our plugin and then others; yield the id of the first process.

    own: the file of our plugin.
    plugins: plugins of Haraka or the packages of HARAKA.
    texts: the files of its configuration, by their paths in it.
    variables: variables of its environment.
    """
    node, modules = program("node", package="nodejs"), npm_modules(*HARAKA)
    directory.mkdir()
    # Haraka looks for its packages below its configuration.
    (directory / "node_modules").symlink_to(modules)
    config = directory / "config"
    shutil.copytree(modules / "Haraka/config", config)
    (directory / "plugins").mkdir()
    shutil.copy(own, directory / "plugins")
    common = {
        "plugins": "\n".join([own.stem, *plugins]),
        "me": "haraka.example",
        "smtp.ini": f"listen=127.0.0.1:{port}\nnodes={HARAKA_PROCESSES}",
        "log.ini": "level=error",
    }
    for name, text in {**common, **texts}.items():
        path = config / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    command = [node, str(modules / "Haraka/bin/haraka"), "-c", str(directory)]
    environment, log = {**os.environ, **variables}, directory / "haraka.log"
    with running_server(command, is_ready=lambda: listens(port), log=log, env=environment) as server:
        yield server.pid
