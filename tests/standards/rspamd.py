"""Temporary rspamd on loopback: unprivileged, in a separate directory, with one rule and without DNS.

with Rspamd() as rspamd:
    settings.RSPAMD_URL = rspamd.url
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Self

from tests.stack.stack import free_port, listens, wait_for
from tests.standards.tools import DEBIAN, program

START_SECONDS = 60.0
PASSWORD = "correct horse"
CONFIGURATION = """\
options {{
  pidfile = "{directory}/pid";
  tempdir = "{directory}";
  hs_cache_dir = "{directory}";
  control_socket = "{directory}/control mode=0600";
  # A short list and no compiled patterns: it starts at once.
  url_tld = "{directory}/tld";
  disable_hyperscan = true;
  filters = "regexp";
  enable_test_patterns = true;
  dns {{ nameserver = ["127.0.0.1:9"]; timeout = 1s; retransmits = 1; }}
}}
logging {{
  type = "file";
  filename = "{directory}/log";
  log_format = "ip: $ip, from: $smtp_from, rcpt: $smtp_rcpts";
}}
lang_detection {{ languages_enable = ["en"]; }}
actions {{ reject = 15; add_header = 6; }}
group "tests" {{ symbols = {{ "WINNER" {{ weight = 4.5; }} }} }}
regexp {{ WINNER = "Subject=/winner/iH"; }}
worker "normal" {{ bind_socket = "127.0.0.1:{port}"; count = 1; }}
# It asks for the password.
worker "controller" {{ bind_socket = "127.0.0.1:{controller_port}"; count = 1; password = "{password}"; }}
"""


class Rspamd:
    """One instance. url, controller_url: without and with PASSWORD."""

    def __init__(self) -> None:
        self._program = program("rspamd", package="rspamd")
        self._directory = Path(tempfile.mkdtemp(prefix="postrider-rspamd-"))
        self._ports = free_port(), free_port()
        self.url, self.controller_url = (f"http://127.0.0.1:{port}" for port in self._ports)
        port, controller_port = self._ports
        text = CONFIGURATION.format(
            directory=self._directory, port=port, controller_port=controller_port, password=PASSWORD
        )
        (self._directory / "conf").write_text(text)
        (self._directory / "tld").write_text("com\nexample\n")

    def __enter__(self) -> Self:
        options = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": DEBIAN, "cwd": self._directory}
        if os.geteuid() == 0:
            account = pwd.getpwnam("nobody")
            for path in (self._directory, *self._directory.iterdir()):
                os.chown(path, account.pw_uid, account.pw_gid)
            options |= {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
        self._process = subprocess.Popen([self._program, "-f", "-c", str(self._directory / "conf")], **options)
        try:
            wait_for(
                lambda: all(map(listens, self._ports)), seconds=START_SECONDS, what="rspamd listens",
                server=self._process, log=self._directory / "log",
            )  # fmt: skip
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._process.terminate()
        self._process.wait(30)
        shutil.rmtree(self._directory, ignore_errors=True)

    def log(self) -> str:
        path = self._directory / "log"
        return path.read_text() if path.exists() else ""
