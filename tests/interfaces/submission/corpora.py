"""Messages of other projects' tests, from Debian's mirrors: real mail in many charsets, and malformed mail."""

import io
import re
import subprocess
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.standards.tools import CACHE, DEBIAN

MIRROR = "http://deb.debian.org"
APT_HELPER = "/usr/lib/apt/apt-helper"


@dataclass(frozen=True)
class Corpus:
    """An archive that contains messages.

    path: its address at the mirror. sha256: its digest. files: a pattern of the messages' paths in it.
    """

    path: str
    sha256: str
    files: str

    def messages(self) -> Iterator[tuple[str, bytes]]:
        """Yield each message with its path."""
        with self._open() as archive:
            for member in archive:
                if member.isfile() and re.fullmatch(self.files, member.name):
                    yield member.name, archive.extractfile(member).read()

    def _open(self) -> tarfile.TarFile:
        file = self._download()
        if file.suffix == ".deb":
            return tarfile.open(fileobj=io.BytesIO(_run("dpkg-deb", "--fsys-tarfile", str(file))))
        return tarfile.open(file)

    def _download(self) -> Path:
        """Return the archive, downloaded once per machine."""
        file = CACHE / "corpora" / self.path.rpartition("/")[2]
        if not file.exists():
            file.parent.mkdir(parents=True, exist_ok=True)
            unchecked = file.with_suffix(".unchecked")
            _run(APT_HELPER, "download-file", f"{MIRROR}/{self.path}", str(unchecked), f"SHA256:{self.sha256}")
            unchecked.rename(file)
        return file


CORPORA = (
    Corpus(
        "debian/pool/main/n/notmuch/notmuch_0.37.orig.tar.xz",
        "0e766df28b78bf4eb8235626ab1f52f04f1e366649325a8ce8d3c908602786f6",
        r".*/test/corpora/(?!README).*",
    ),
    Corpus(
        "debian/pool/main/f/flufl.bounce/python3-flufl.bounce_4.0-3_all.deb",
        "da0ab024a4b2bba77afc536d89025f72fb88e5226a2ffc64431549f98f8f75fa",
        r".*/tests/data/.*\.txt",
    ),
    Corpus(
        "debian/pool/main/g/golang-github-jhillyerd-enmime/golang-github-jhillyerd-enmime-dev_0.9.3-2_all.deb",
        "c451c964e2475c2363da7dd893f63978e035c08dfb684fe08a7bc967fcd72146",
        r".*/testdata/(mail|parts|low-quality)/.*\.raw",
    ),
    Corpus(
        "debian/pool/main/r/rspamd/rspamd_3.4.orig.tar.xz",
        "a7dad761aa6bbc666b7977dfd741b240bf02cff8779e088f17dbfa74d5429f8a",
        r".*/test/functional/messages/.*\.eml",
    ),
    Corpus(
        "debian/pool/main/p/public-inbox/public-inbox_1.9.0.orig.tar.gz",
        "10d9d3d982bbae9383208f53aa2118482a799a958e9f1b24792b807fc225aaba",
        r".*/t/.*\.eml",
    ),
    Corpus(
        "debian-security/pool/updates/main/p/python3.11/python3.11_3.11.2.orig.tar.gz",
        "2411c74bda5bbcfcddaf4531f66d1adc73f247f529aee981b029513aefdbf849",
        r".*/Lib/test/test_email/data/.*\.txt",
    ),
)


def _run(*command: str) -> bytes:
    done = subprocess.run(command, env=DEBIAN, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr.decode()}"
    return done.stdout
