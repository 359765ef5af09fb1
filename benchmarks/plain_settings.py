"""Settings for the plain DRF view of plain_urls, which benchmarks.accept compares with."""

from config.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.plain_urls"
