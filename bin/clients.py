"""Generate the parts of the client libraries that follow from docs/openapi.json (docs/decisions/0289).

    python bin/clients.py [python] [javascript]

The files are not committed: packages, bin/check and the tests generate them. Any Python from 3.9 will do.
"""

import sys
from collections.abc import Iterable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PYTHON = REPOSITORY / "clients/python/src/postrider_client"
JAVASCRIPT = REPOSITORY / "clients/javascript/src"


def main() -> None:
    sys.path.insert(0, str(REPOSITORY / "clients"))
    from generator import javascript, python  # noqa: PLC0415
    from generator.document import Document  # noqa: PLC0415

    document = Document()
    languages = sys.argv[1:] or ["python", "javascript"]
    if "python" in languages:
        write(PYTHON, python.modules(document))
    if "javascript" in languages:
        write(JAVASCRIPT, javascript.modules(document))


def write(directory: Path, files: Iterable[tuple[str, str]]) -> None:
    """Write the files whose text is another one, so that nothing is compiled again without a change."""
    for name, text in files:
        path = directory / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
