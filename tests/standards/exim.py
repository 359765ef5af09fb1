"""Temporary Exim on loopback: accepts mail from this machine only, and relays it by its routes.

It runs unprivileged, in a separate directory. Debian's package conflicts with that of Postfix, so its program is taken
out of the package without an installation; an nss_wrapper knows the account that the program expects. A message refused
by the next host returns as a bounce to its return path, also by the routes.

    with Exim(routes={"bounce.example": 2526, "*": 2525}) as exim:
        smtplib.SMTP("127.0.0.1", exim.port)…
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.stack.stack import free_port, wait_for
from tests.standards.tools import DEBIAN, greets, library, program_of_package

START_SECONDS = 15.0
PROGRAM = "usr/sbin/exim4"
# Libraries of the program that a machine without Exim may lack.
LIBRARIES = {
    "libgnutls-dane.so.0": "libgnutls-dane0",
    "libidn.so.12": "libidn12",
    "libnsl.so.2": "libnsl2",
    "libnss_wrapper.so": "libnss-wrapper",
}
# The account whose name is compiled into the program.
ACCOUNT = "Debian-exim"
CONFIGURATION = """\
primary_hostname = exim.example
qualify_domain = exim.example
exim_path = {directory}/exim4
exim_user = {account}
exim_group = {group}
never_users =
deliver_drop_privilege = true
spool_directory = {directory}/spool
log_file_path = {directory}/%slog
pid_file_path = {directory}/pid
keep_environment = LD_PRELOAD : NSS_WRAPPER_PASSWD : NSS_WRAPPER_GROUP
local_interfaces = 127.0.0.1
daemon_smtp_ports = {port}
host_lookup =
rfc1413_query_timeout = 0s
accept_8bitmime = true
smtputf8_advertise_hosts = *
tls_advertise_hosts =
message_size_limit = 50M
bounce_return_size_limit = 1K
acl_smtp_rcpt = accept
acl_smtp_data = accept

begin routers

{routers}
begin transports

smtp:
  driver = smtp
  allow_localhost
  hosts_try_fastopen =

begin retry

* * F,1h,1s
"""
ROUTER = """\
to_{port}:
  driver = manualroute
  domains = {domain}
  route_list = * 127.0.0.1::{port}
  self = send
  transport = smtp
  no_more

"""


class Exim:
    """One instance. routes: a recipient's domain, or "*", to the port of its next host on loopback."""

    def __init__(self, *, routes: dict[str, int]) -> None:
        libraries = {name: library(f"lib/*/{name}", package=package) for name, package in LIBRARIES.items()}
        self._directory = Path(tempfile.mkdtemp(prefix="postrider-exim-"))
        self.port = free_port()
        self._account = pwd.getpwnam("nobody") if os.geteuid() == 0 else pwd.getpwuid(os.geteuid())
        self._environment = {
            **DEBIAN,
            "LD_PRELOAD": str(libraries["libnss_wrapper.so"]),
            "NSS_WRAPPER_PASSWD": str(self._directory / "passwd"),
            "NSS_WRAPPER_GROUP": str(self._directory / "group"),
        }
        self._write(routes)

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        if pid := self._pid():
            os.kill(pid, 15)
        shutil.rmtree(self._directory, ignore_errors=True)

    def start(self) -> None:
        """Start Exim and wait until it accepts connections."""
        self._run("-bd", "-q1s")
        log = self._directory / "mainlog"
        wait_for(lambda: greets(self.port), seconds=START_SECONDS, what="Exim greets clients", log=log)

    def log(self) -> str:
        path = self._directory / "mainlog"
        return path.read_text() if path.exists() else ""

    def _write(self, routes: dict[str, int]) -> None:
        shutil.copy(program_of_package(PROGRAM, "exim4-daemon-light"), self._directory / "exim4")
        # A domain before "*": the first router that matches decides.
        ordered = sorted(routes.items(), key=lambda route: route[0] == "*")
        configuration = CONFIGURATION.format(
            directory=self._directory,
            account=self._account.pw_uid,
            group=self._account.pw_gid,
            port=self.port,
            routers="".join(ROUTER.format(domain=domain, port=port) for domain, port in ordered),
        )
        (self._directory / "conf").write_text(configuration)
        ids = f"{self._account.pw_uid}:{self._account.pw_gid}"
        (self._directory / "passwd").write_text(f"{ACCOUNT}:x:{ids}::/:/bin/false\nroot:x:0:0::/:/bin/sh\n")
        (self._directory / "group").write_text(f"{ACCOUNT}:x:{self._account.pw_gid}:\nroot:x:0:\n")
        if os.geteuid() == 0:
            for path in (self._directory, *self._directory.iterdir()):
                os.chown(path, self._account.pw_uid, self._account.pw_gid)

    def _pid(self) -> int | None:
        path = self._directory / "pid"
        return int(path.read_text()) if path.exists() else None

    def _run(self, *arguments: str) -> None:
        line = [str(self._directory / "exim4"), "-C", str(self._directory / "conf"), *arguments]
        as_account = {"user": self._account.pw_uid, "group": self._account.pw_gid, "extra_groups": []}
        done = subprocess.run(
            line,
            capture_output=True,
            text=True,
            env=self._environment,
            timeout=60,
            check=False,
            cwd=self._directory,
            **(as_account if os.geteuid() == 0 else {}),
        )
        assert done.returncode == 0, f"{done.stdout}{done.stderr}{self.log()}"
