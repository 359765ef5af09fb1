"""Static files: hashed and compressed by `manage.py collectstatic`, and served by WhiteNoise (docs/decisions/0131)."""

import hashlib
import json
import re
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import Any

from django.contrib.staticfiles import finders
from django.contrib.staticfiles.finders import AppDirectoriesFinder
from django.http import HttpRequest, HttpResponseBase
from whitenoise.compress import Compressor
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.storage import CompressedManifestStaticFilesStorage

# Files of packages that no page uses, or that console/dashboard/assets/ replaces.
UNUSED = ("swagger-ui-dist", "unfold/fonts/*", "LICENSE*", "README*")
HASH = re.compile(r"\.[0-9a-f]{12}(?=\.\w+$)")
SOURCES_FILE = "sources.json"


class UsedFilesFinder(AppDirectoriesFinder):
    """Finds the static files of all apps except the unused ones."""

    def list(self, ignore_patterns: Any) -> Iterable[Any]:
        return super().list([*(ignore_patterns or ()), *UNUSED])


class HashedFilesStorage(CompressedManifestStaticFilesStorage):
    """Names the collected file with its hash; falls back to the plain name when this version is not collected.

    Then WhiteNoise serves the files from their packages, which works, but without compression and long caching.
    """

    @cached_property
    def is_collected(self) -> bool:
        """Return whether the collected files are those of the installed packages."""
        path = Path(self.location, SOURCES_FILE)
        return path.exists() and json.loads(path.read_text("utf-8")) == digest_of_sources()

    def url(self, name: str | None, **options: bool) -> str:
        return super().url(name, **options) if self.is_collected else f"{self.base_url}{name}"

    def create_compressor(self, **options: Any) -> Compressor:
        # Source maps are for developers. Brotli takes many times as long, at each start of bin/run.
        extensions = (*Compressor.SKIP_COMPRESS_EXTENSIONS, "map")
        return Compressor(**{**options, "extensions": extensions, "use_brotli": False})

    def save_manifest(self) -> None:
        super().save_manifest()
        Path(self.location, SOURCES_FILE).write_text(json.dumps(digest_of_sources()), "utf-8")


class StaticFilesMiddleware(WhiteNoiseMiddleware):
    """Also serves the file under the hash that it has in another release.

    While processes are replaced, a page of one release may request its files from a process of the other.
    """

    def add_files(self, root: str, prefix: str | None = None) -> None:
        # WhiteNoise warns of a missing directory; manage.py doctor explains it.
        if Path(root).is_dir():
            super().add_files(root, prefix)

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        path = request.path_info
        if path.startswith(self.static_prefix) and path not in self.files:
            request.path_info = HASH.sub("", path)
        response: HttpResponseBase = super().__call__(request)
        return response


def digest_of_sources() -> str:
    """Return a digest of the names and contents of all static files of the installed packages."""
    digest = hashlib.sha256()
    for finder in finders.get_finders():
        for name, storage in sorted(finder.list(None), key=lambda found: found[0]):
            digest.update(f"{name}\0".encode() + hashlib.sha256(Path(storage.path(name)).read_bytes()).digest())
    return digest.hexdigest()
