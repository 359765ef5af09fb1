"""Update docs/openapi.json, the OpenAPI document of this commit, from the source code.

    python bin/openapi.py [--check]

--check changes no file. It fails if the document is out of date, or differs from that of the newest release in a way
that breaks programs and that CHANGELOG.md does not name (docs/decisions/0288).
"""

import argparse
import json
import sys
from pathlib import Path

from breaking_changes import unannounced_changes
from django_setup import REPOSITORY, set_up_django

DOCUMENT = REPOSITORY / "docs/openapi.json"
RELEASES = REPOSITORY / "docs/openapi"
CHANGELOG = REPOSITORY / "CHANGELOG.md"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change no file")
    is_check = parser.parse_args().check
    text = readable(present_document())
    is_stale = not DOCUMENT.exists() or DOCUMENT.read_text("utf-8") != text
    if not is_check:
        DOCUMENT.write_text(text, "utf-8")
    elif is_stale:
        sys.exit(f"{DOCUMENT.name} is out of date; run bin/openapi.py")
    elif errors := compare_with_release():
        sys.exit("\n".join(errors))


def compare_with_release() -> list[str]:
    """Return an error for each breaking change since the newest release that the changelog does not name."""
    release = newest_release()
    old, new = (json.loads(path.read_text("utf-8")) for path in (release, DOCUMENT))
    changes = unannounced_changes(old, new, CHANGELOG.read_text("utf-8"))
    advice = f'breaks programs written for {release.stem}; name it so in an entry of "Unreleased" in {CHANGELOG.name}'
    return [f"{change} ({advice})" for change in changes]


def newest_release() -> Path:
    return max(RELEASES.glob("*.json"), key=lambda path: [int(number) for number in path.stem.split(".")])


def present_document() -> bytes:
    """Return the document that the service answers."""
    set_up_django()
    from core.api.openapi import openapi_document  # noqa: PLC0415 - Django is set up now

    return openapi_document()


def readable(document: bytes) -> str:
    """Return a document with one member a line, in the order of the service, so that changes can be reviewed."""
    return json.dumps(json.loads(document), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
