"""Comparison of public templates with the engines of the services that they are for.

    python -m tools.public_templates --data-dir DIR --engines DIR [--mustachio DIR] [--layouts] PROVIDER DIR

PROVIDER: postmark, sendgrid, resend or mjml. DIR: a bare git repository of its templates. See README.md.
"""

import argparse
import html
import json
import re
import secrets
from collections import Counter
from pathlib import Path

from core.delivery.message.footer import html_footer, text_footer
from tools.public_templates import samples as sources
from tools.public_templates.engines import Engines
from tools.public_templates.inbox import read_parts
from tools.public_templates.providers import (
    RequestRefused,
    Service,
    send_with_postmark,
    send_with_postrider,
    send_with_resend,
    send_with_sendgrid,
)
from tools.public_templates.samples import Repository, Sample

SENDERS = {
    "postmark": send_with_postmark,
    "sendgrid": send_with_sendgrid,
    "resend": send_with_resend,
    "mjml": send_with_postrider,
}
REACT_EMAILS = "apps/demo/emails/"
# The unsubscribe link, and its places in the templates.
UNSUBSCRIBE = re.compile(r"http://[^/\s\"]+/u/[\w-]+|<%asm_\w+_url%>")
LINK = "UNSUBSCRIBE"
FOOTERS = (html_footer(LINK), text_footer(LINK))
CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def main() -> None:
    options = read_options()
    demo = json.loads((options.data_dir / "demo.json").read_text())
    service = Service(demo["baseUrl"], demo["apiKey"])
    service.stop_tracking()
    samples = load_samples(options)
    domain = f"{secrets.token_hex(6)}.example"
    created = {}
    for index, sample in enumerate(samples):
        try:
            created[f"{index}@{domain}"] = SENDERS[options.provider](service, sample, f"{index}@{domain}")
        except RequestRefused as error:
            print(f"{sample.name}: {error}")
    sent = read_parts(options.data_dir, domain=domain, count=len(created))
    for path in (path for paths in created.values() for path in paths):
        service.call("DELETE", path)
    results: Counter[str] = Counter()
    for recipient, parts in sent.items():
        results += compare(samples[int(recipient.partition("@")[0])], parts)
    print(f"{options.provider}: {len(samples)} samples, {len(created)} created, {len(sent)} sent")
    print(", ".join(f"{count} parts {result}" for result, count in results.most_common()))


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("provider", choices=SENDERS)
    parser.add_argument("repository", type=Path)
    parser.add_argument("--data-dir", type=Path, required=True, help="DATA_DIR of the running service")
    parser.add_argument("--engines", type=Path, required=True, help="folder for the engines")
    parser.add_argument("--layouts", action="store_true", help="move the lines that templates share into a layout")
    parser.add_argument("--mustachio", type=Path, help="bare git repository of Mustachio")
    return parser.parse_args()


def load_samples(options: argparse.Namespace) -> list[Sample]:
    """Return the samples with the results of the provider's engine."""
    repository, engines = Repository(options.repository), Engines(options.engines)
    engines.install_node()
    if options.provider == "postmark":
        engines.install_mustachio(Repository(options.mustachio))
        samples = engines.mustachio(sources.postmark_sources(repository))
        return sources.with_layouts(samples) if options.layouts else samples
    if options.provider == "sendgrid":
        return engines.handlebars(sources.sendgrid_sources(repository))
    if options.provider == "mjml":
        return engines.mjml(repository)
    return engines.react_email(repository, REACT_EMAILS)


def compare(sample: Sample, parts: dict[str, str]) -> Counter[str]:
    """Return how many parts are equal, and print the first difference of the others."""
    results: Counter[str] = Counter()
    for name, expected in sample.expected.items():
        found, wanted = _normal(parts.get(name, ""), name), _normal(expected, name)
        result = "equal" if found == wanted else "equal but for the spelling of character references"
        if html.unescape(found) != html.unescape(wanted):
            result = "different"
            print(f"{sample.name} {name}: {first_difference(found, wanted)}")
        results[result] += 1
    return results


def first_difference(found: str, wanted: str) -> str:
    pairs = enumerate(zip(found, wanted, strict=False))
    start = next((index for index, (one, other) in pairs if one != other), min(len(found), len(wanted)))
    window = slice(max(0, start - 40), start + 60)
    return f"at {start} {found[window]!r} instead of {wanted[window]!r}"


def _normal(text: str, name: str) -> str:
    """Return a part with line feeds, without the last ones and the footer; a subject is one line."""
    lines = UNSUBSCRIBE.sub(LINK, text.replace("\r\n", "\n"))
    for footer in FOOTERS:
        lines = lines.replace(footer, "")
    lines = lines.rstrip("\n")
    return CONTROLS.sub(" ", lines).strip() if name == "subject" else lines


main()
