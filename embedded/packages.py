"""Install Debian's packages where we may."""

import os
import shutil
import subprocess

from embedded.terminal import say

# RUNLEVEL=1 keeps a package from starting its service: we start our own.
APT_SETTINGS = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}


def install_package(name: str) -> bool:
    """Return whether apt installed the package; False where there is no apt or we are not root."""
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        return False
    say(f"Installing the package {name} …")
    install = ["install", "-y", "-q", "--no-install-recommends", name]
    # The lists are fetched only when they are missing or name a package that is gone.
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
