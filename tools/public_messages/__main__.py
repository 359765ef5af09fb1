"""Comparison of public messages with independent readers.

    python -m tools.public_messages compare --readers DIR FOLDER...
    python -m tools.public_messages submit --readers DIR FOLDER...
    python -m tools.public_messages mutate [--count N] [--seed N] FOLDER...

FOLDER: messages, or a bare git repository with some. See README.md.
"""

import argparse
import gc
import os
from collections.abc import Sequence
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from tools.public_messages.samples import PublicMessage, samples_of  # noqa: E402 - they need the settings
from tools.public_messages.steps import compare, mutate, submit  # noqa: E402


def main() -> None:
    options = read_options()
    samples = load_samples(options.folders)
    print(f"{len(samples):,} messages")
    # Collections of garbage would count in the times.
    gc.freeze()
    if options.step == "mutate":
        mutate(samples, count=options.count, seed=options.seed)
    else:
        {"compare": compare, "submit": submit}[options.step](samples, options.readers)


def read_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("step", choices=("compare", "submit", "mutate"))
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--readers", type=Path, default=Path("var/readers"), help="folder for the readers")
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def load_samples(folders: Sequence[Path]) -> list[PublicMessage]:
    """Return the messages of all folders, each content once."""
    by_source: dict[bytes, PublicMessage] = {}
    for folder in folders:
        for sample in samples_of(folder):
            by_source.setdefault(sample.source, PublicMessage(f"{folder.parent.name}: {sample.name}", sample.source))
    return list(by_source.values())


main()
