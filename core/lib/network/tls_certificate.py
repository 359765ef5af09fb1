"""The TLS certificate of a server, read again when its files change."""

import logging
import ssl
from pathlib import Path

log = logging.getLogger("postrider.tls")


class Certificate:
    """A certificate and its key as PEM files. Raises OSError, ssl.SSLError when it is created with invalid files."""

    def __init__(self, certificate: str, key: str) -> None:
        self._files = (certificate, key)
        self._stamps = self._read_stamps()
        self.context = _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._files)

    def refresh(self) -> None:
        """Use the files for new connections if they changed; while they do not fit together, keep the old ones."""
        try:
            stamps = self._read_stamps()
            if stamps == self._stamps:
                return
            _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), self._files)
            _load(self.context, self._files)
        except (OSError, ssl.SSLError) as error:
            log.warning("the new certificate cannot be used yet", extra={"data": {"error": str(error)}})
            return
        self._stamps = stamps

    def _read_stamps(self) -> list[tuple[int, int]]:
        """Return the times and inodes of the files: a renewal replaces them, often through a symbolic link."""
        return [(stat.st_mtime_ns, stat.st_ino) for stat in (Path(name).stat() for name in self._files)]


def certificate_error(certificate: str, key: str) -> str:
    """Return why PEM files cannot be used as a certificate and its key; empty if they can."""
    try:
        Certificate(certificate, key)
    except (OSError, ssl.SSLError) as error:
        return str(error)
    return ""


def _load(context: ssl.SSLContext, files: tuple[str, str]) -> ssl.SSLContext:
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(*files)
    return context
