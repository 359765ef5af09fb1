"""Temporary Postfix on loopback: accepts mail from this machine only, and relays it by its routes.

It has separate directories, ignores the system's configuration, and needs root. A message refused by the next host
returns as a bounce to its return path, also by the routes.

    with Postfix(routes={"bounce.example": 2526, "*": 2525}) as postfix:
        smtplib.SMTP("127.0.0.1", postfix.port)…
"""

import json
import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import pytest

from tests.stack.stack import free_port, wait_for
from tests.standards.tools import DEBIAN, greets, program

START_SECONDS = 15.0
# The services for relaying and bouncing: name, type, private, unprivileged, chroot, wakeup, processes, command.
MASTER = """\
127.0.0.1:{port} inet n - n - - smtpd
pickup    unix n - n 60 1 pickup
cleanup   unix n - n - 0 cleanup
qmgr      unix n - n 300 1 qmgr
rewrite   unix - - n - - trivial-rewrite
bounce    unix - - n - 0 bounce
defer     unix - - n - 0 bounce
trace     unix - - n - 0 bounce
verify    unix - - n - 1 verify
flush     unix n - n 1000? 0 flush
tlsmgr    unix - - n 1000? 1 tlsmgr
proxymap  unix - - n - - proxymap
smtp      unix - - {chroot} - - smtp
relay     unix - - n - - smtp
showq     unix n - n - - showq
error     unix - - n - - error
retry     unix - - n - - error
discard   unix - - n - - discard
anvil     unix - - n - 1 anvil
scache    unix - - n - 1 scache
postlog   unix-dgram n - n - 1 postlogd
"""


class Postfix:
    """One instance.

    routes: a recipient's domain, or "*", to the port of its next host on loopback.
    settings: replace lines of main.cf: minimal_backoff_time, bounce_queue_lifetime, delay_warning_time…
    name_server: the address of the resolver of the SMTP client, at port 53; by default that of the system.
    """

    def __init__(
        self, *, routes: dict[str, int], settings: dict[str, Any] | None = None, name_server: str = ""
    ) -> None:
        if os.geteuid() != 0:
            pytest.skip("a separate Postfix needs root")
        self._postfix = program("postfix", package="postfix")
        self._directory = Path(tempfile.mkdtemp(prefix="postrider-postfix-"))
        self._configuration = self._directory / "conf"
        self.port = free_port()
        self._write(routes, settings or {}, name_server)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()
        shutil.rmtree(self._directory, ignore_errors=True)

    def start(self) -> None:
        """Start Postfix, with its earlier queue, and wait until it accepts connections."""
        self._run(self._postfix, "start")
        log = self._directory / "log"
        wait_for(lambda: greets(self.port), seconds=START_SECONDS, what="Postfix greets clients", log=log)

    def stop(self) -> None:
        self._run(self._postfix, "stop")

    def set(self, name: str, value: Any) -> None:
        """Change a setting of main.cf, for new processes."""
        self._run("postconf", f"{name}={value}")
        self._run(self._postfix, "reload")

    def queue(self) -> list[dict[str, Any]]:
        """Return the queue in the form of postqueue(1): queue_id, queue_name, sender, recipients with delay_reason."""
        listed = self._run("postqueue", "-j").stdout
        return [json.loads(line) for line in listed.splitlines()]

    def delete_queue(self) -> None:
        self._run("postsuper", "-d", "ALL")

    def log(self) -> str:
        path = self._directory / "log"
        return path.read_text() if path.exists() else ""

    def _write(self, routes: dict[str, int], settings: dict[str, Any], name_server: str) -> None:
        self._directory.chmod(0o755)
        for name in ("conf", "queue", "data"):
            (self._directory / name).mkdir()
        owner = pwd.getpwnam("postfix")
        os.chown(self._directory / "data", owner.pw_uid, owner.pw_gid)
        table = "".join(f"{domain} smtp:[127.0.0.1]:{port}\n" for domain, port in routes.items())
        (self._configuration / "transport").write_text(table)
        # The client reads its name servers in a chroot, whose directory is that of the queue.
        chroot = "y" if name_server else "n"
        (self._configuration / "master.cf").write_text(MASTER.format(port=self.port, chroot=chroot))
        if name_server:
            (self._directory / "queue" / "etc").mkdir()
            resolv_conf = f"nameserver {name_server}\noptions edns0 trust-ad\n"
            (self._directory / "queue" / "etc" / "resolv.conf").write_text(resolv_conf)
        lines = (f"{name} = {value}\n" for name, value in {**self._main(), **settings}.items())
        (self._configuration / "main.cf").write_text("".join(lines))

    def _main(self) -> dict[str, Any]:
        return {
            "compatibility_level": "3.6",
            "queue_directory": self._directory / "queue",
            "data_directory": self._directory / "data",
            "maillog_file": self._directory / "log",
            "maillog_file_prefixes": self._directory,
            "myhostname": "postfix.example",
            "inet_interfaces": "127.0.0.1",
            "inet_protocols": "ipv4",
            "mynetworks": "127.0.0.0/8",
            "mydestination": "",
            "local_transport": "error:no local mail",
            "alias_maps": "",
            "transport_maps": f"texthash:{self._configuration / 'transport'}",
            "smtpd_relay_restrictions": "permit_mynetworks, reject",
            # Refuse bare line feeds, from our own network too (Postfix 3.7.10 and newer).
            "smtpd_forbid_bare_newline": "reject",
            "smtpd_forbid_bare_newline_exclusions": "",
            "strict_7bit_headers": "yes",
            "strict_8bitmime_body": "yes",
            "strict_mime_encoding_domain": "yes",
            "strict_rfc821_envelopes": "yes",
            "message_size_limit": 50_000_000,
            "local_header_rewrite_clients": "",
            "smtp_tls_security_level": "none",
            "smtpd_tls_security_level": "none",
            "biff": "no",
        }

    def _run(self, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        line = [command, "-c", str(self._configuration), *arguments]
        done = subprocess.run(line, capture_output=True, text=True, env=DEBIAN, timeout=60, check=False)
        assert done.returncode == 0, f"{done.stdout}{done.stderr}{self.log()}"
        return done
