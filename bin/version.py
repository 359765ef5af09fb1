"""The version, which the project and all clients share.

`python bin/version.py 0.2.0` writes it to every file, and keeps the OpenAPI document of the release.
"""

import re
import shutil
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
# The first version in each of these files is the one of the package.
TOML = r'^version = "(.+)"$'
JSON = r'^  "version": "(.+)",$'
IMAGE = r"newTag: ([^ ,}]+)"
PLACES = {
    "pyproject.toml": (TOML,),
    "deploy/Dockerfile": (r"^ARG VERSION=(.+)$",),
    "deploy/helm/Chart.yaml": (r"^version: (.+)$", r"^appVersion: (.+)$"),
    "deploy/kubernetes/kustomization.yaml": (IMAGE,),
    "deploy/overlays/production/kustomization.yaml": (IMAGE,),
    "docs/install-kubernetes.md": (r"registry\.example\.com/postrider:(\S+) --push",),
    "clients/python/pyproject.toml": (TOML,),
    "clients/python/src/postrider_client/version.py": (r'^__version__ = "(.+)"$',),
    "clients/javascript/src/version.ts": (r'^export const VERSION = "(.+)";$',),
    **{
        f"clients/{client}/{file}": (JSON, r'^      "version": "(.+)",$') if file == "package-lock.json" else (JSON,)
        for client in ("javascript", "n8n", "zapier")
        for file in ("package.json", "package-lock.json")
    },
}


def read_versions() -> dict[str, set[str]]:
    """Return the versions in each file; a file without the expected line has an empty set."""
    return {name: {match[1] for match in _matches(name)} for name in PLACES}


def write_version(version: str) -> None:
    for name in PLACES:
        path = REPOSITORY / name
        text = path.read_text(encoding="utf-8")
        for match in sorted(_matches(name), key=lambda match: -match.start()):
            text = text[: match.start(1)] + version + text[match.end(1) :]
        path.write_text(text, encoding="utf-8")


def keep_document(version: str) -> None:
    """Keep the document with which bin/openapi.py compares later ones."""
    documents = REPOSITORY / "docs"
    shutil.copyfile(documents / "openapi.json", documents / "openapi" / f"{version}.json")


def _matches(name: str) -> list[re.Match[str]]:
    text = (REPOSITORY / name).read_text(encoding="utf-8")
    found = (re.search(pattern, text, re.MULTILINE) for pattern in PLACES[name])
    return [match for match in found if match]


if __name__ == "__main__":
    write_version(sys.argv[1])
    keep_document(sys.argv[1])
