"""Generates modules before a package is built; an sdist has them already."""

import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GeneratedModules(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        script = Path(self.root).parent.parent / "bin/clients.py"
        if script.exists():
            subprocess.run([sys.executable, str(script), "python"], check=True)
