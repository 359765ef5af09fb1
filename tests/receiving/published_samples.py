"""Published sample messages and envelopes for verification, from the source packages of PyPI.

The test suite of RFC 7208 by the SPF project (in pyspf), and the messages of dkimpy and authheaders. They are
downloaded and not copied, and nothing of them is run.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.receiving import corpus
from tests.receiving.zone import FAILS
from tests.standards.tools import CACHE

PACKAGES = ("pyspf==2.0.14", "dkimpy==1.1.8", "authheaders==0.16.3")
SECONDS = 300
# Published keys by the name that signs with them.
KEY_FILES = {
    "test._domainkey.example.com": "dkimpy-1.1.8/dkim/tests/data/test.txt",
    "sed._domainkey.test.ex": "dkimpy-1.1.8/dkim/tests/data/eximtest.dns",
}
# The keys of RFC 8463, appendix A.2, which signed the samples of rfc6376*.
RFC_8463_ED25519 = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo="
RFC_8463_RSA = (
    "v=DKIM1; k=rsa; p=MIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQDkHlOQoBTzWRiGs5V6NpP3idY6Wk08a5qhdR6wy5bdOKb2jLQiY/J16JYi"
    "0Qvx/byYzCNb3W91y3FutACDfzwQ/BC/e/8uBsCR+yz1Lxj+PL6lHvqMKrM3rG4hstT5QjvHO9PzoxZyVYLzBfO2EeC3Ip3G+2kryOTIKT+l/K4w3QIDAQAB"
)
DMARC = {
    "example.com": "v=DMARC1; p=reject",
    "example.org": "v=DMARC1; p=none",
    "example.net": "v=DMARC1; p=none; sp=reject",
    "football.example.com": "v=DMARC1; p=quarantine",
}
KINDS = ("TXT", "A", "AAAA", "MX", "PTR")


def downloaded() -> Path:
    """Return the directory of the unpacked packages; skip the test if they cannot be downloaded."""
    directory = CACHE / "published-samples"
    if not (directory / "done").exists():
        directory.mkdir(parents=True, exist_ok=True)
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:"]
        done = subprocess.run(
            [*command, "--dest", str(directory), *PACKAGES],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"the source packages cannot be downloaded: {done.stderr[-300:]}")
        for package in directory.glob("*.tar.gz"):
            subprocess.run(["tar", "--extract", "--file", package], cwd=directory, check=True, timeout=SECONDS)
        (directory / "done").touch()
    return directory


def spf_suite() -> Iterator[tuple[dict[str, dict[str, Any]], list[tuple[corpus.Case, list[str]]]]]:
    """Yield each zone of the suite of RFC 7208 with its cases, and the results that it allows for each."""
    text = (downloaded() / "pyspf-2.0.14/test/rfc7208-tests.yml").read_text("utf-8")
    for scenario in yaml.safe_load_all(text):
        yield _zone(scenario["zonedata"]), [_spf_case(*named) for named in scenario["tests"].items()]


def messages() -> tuple[dict[str, dict[str, Any]], list[corpus.Case]]:
    """Return the sample messages of dkimpy and authheaders, with the zone of their keys."""
    directory = downloaded()
    zone: dict[str, dict[str, Any]] = {
        name: {"TXT": [(directory / path).read_text("utf-8").strip()]} for name, path in KEY_FILES.items()
    }
    zone["brisbane._domainkey.football.example.com"] = {"TXT": [RFC_8463_ED25519]}
    zone["test._domainkey.football.example.com"] = {"TXT": [RFC_8463_RSA]}
    for domain, record in DMARC.items():
        zone[f"_dmarc.{domain}"] = {"TXT": [record]}
    paths = [
        *sorted((directory / "dkimpy-1.1.8/dkim/tests/data").glob("*.m*sg*")),
        *sorted((directory / "dkimpy-1.1.8/dkim/tests/data").glob("*message*")),
        *sorted((directory / "authheaders-0.16.3/authheaders/test").glob("*message*")),
    ]
    return zone, [
        corpus.Case(path.name, b"\r\n".join(path.read_bytes().splitlines()) + b"\r\n", "bounce@example.com")
        for path in paths
    ]


def _spf_case(name: str, test: dict[str, Any]) -> tuple[corpus.Case, list[str]]:
    mail_from = test.get("mailfrom") or ""
    source = corpus.plain(mail_from.rpartition("@")[2] or "none.example")
    results = test["result"] if isinstance(test["result"], list) else [test["result"]]
    return corpus.Case(name, source, mail_from, test["helo"], test["host"]), results


def _zone(data: dict[str, list[Any]]) -> dict[str, dict[str, Any]]:
    zone = {name.lower(): _records(records) for name, records in data.items()}
    aliases = {name: records.pop("CNAME")[0].lower() for name, records in zone.items() if "CNAME" in records}
    return zone | {name: zone.get(alias, {}) for name, alias in aliases.items()}


def _records(entries: list[Any]) -> dict[str, Any]:
    """Return the records of a name by type.

    A record of the obsolete type SPF is one of type TXT if the name says nothing else; TIMEOUT fails.
    """
    records: dict[str, Any] = {}
    absent = set()
    for entry in entries:
        if entry == "TIMEOUT":
            continue
        ((kind, value),) = entry.items()
        if value == "NONE":
            absent.add(kind)
        elif value == "TIMEOUT":
            records[kind] = FAILS
        else:
            text = "".join(value) if isinstance(value, list) and kind in {"SPF", "TXT"} else value
            records.setdefault(kind, []).append(list(text) if kind == "MX" else text)
    if "SPF" in records and "TXT" not in records.keys() | absent:
        records["TXT"] = records["SPF"]
    records.pop("SPF", None)
    if "TIMEOUT" in entries:
        records = dict.fromkeys(KINDS, FAILS) | records
    return records
