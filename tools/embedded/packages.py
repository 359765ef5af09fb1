"""Debian packages that the launcher installs when it runs as root."""

import os
import shutil
import subprocess

from tools.embedded.terminal import print_status

# RUNLEVEL=1 keeps a package from starting its own service.
APT_SETTINGS = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}


def install_package(name: str) -> bool:
    """Return whether apt installed the package; False without apt or without root."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    print_status(f"Installing the package {name} …")
    install = ["install", "-y", "-q", "--no-install-recommends", name]
    # Package lists are only updated when they are missing or outdated.
    return _apt(install) or (_apt(["update", "-q"]) and _apt(install))


def _apt(arguments: list[str]) -> bool:
    done = subprocess.run(
        ["apt-get", *arguments],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, **APT_SETTINGS},
    )
    return done.returncode == 0
