"""Update docs/openapi.json, the OpenAPI document of this commit, from the source code.

    python bin/openapi.py [--check]

--check changes no file and fails if the document is out of date.
"""

import argparse
import json
import os
import sys
from pathlib import Path

import django

REPOSITORY = Path(__file__).resolve().parent.parent
DOCUMENT = REPOSITORY / "docs/openapi.json"
# Settings without a default; nothing is opened.
ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "config.settings",
    "MODE": "embedded",
    "DATABASE_URL": "postgres://unset/unset",
    "REDIS_URL": "redis://unset",
    "SECRET_KEY": "openapi-0123456789abcdefghijklmnopqrstuvwxyz-",
    "APP_KEYS": "openapi:AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change no file")
    is_check = parser.parse_args().check
    text = readable(present_document())
    is_stale = not DOCUMENT.exists() or DOCUMENT.read_text("utf-8") != text
    if is_check:
        sys.exit(f"{DOCUMENT.name} is out of date; run bin/openapi.py" if is_stale else 0)
    if is_stale:
        DOCUMENT.write_text(text, "utf-8")


def present_document() -> bytes:
    """Return the document that the service answers."""
    sys.path.insert(0, str(REPOSITORY))
    os.environ.update(ENVIRONMENT)
    django.setup()
    from core.api.openapi import openapi_document  # noqa: PLC0415 - Django is set up now

    return openapi_document()


def readable(document: bytes) -> str:
    """Return a document with one member a line, in the order of the service, so that changes can be reviewed."""
    return json.dumps(json.loads(document), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    main()
