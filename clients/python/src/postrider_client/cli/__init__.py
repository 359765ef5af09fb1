"""The command line `postrider`.

`program.py` lists the commands. Each is a click command of the class in `commands.py` that takes the `Invocation`.
"""

import sys


def main() -> None:
    """Run the program. Requires the extra `cli`."""
    try:
        from postrider_client.cli.program import run  # noqa: PLC0415 - its packages are optional
    except ModuleNotFoundError as error:
        if error.name not in {"click", "rich", "yaml"}:
            raise
        sys.exit("error: The command line needs click, PyYAML and rich. Run: pip install click PyYAML rich")
    sys.exit(run(sys.argv[1:]))
