"""Settings for the plain DRF view of plain_urls, which tools.benchmarks.accept compares with."""

from config.settings import *  # noqa: F403

ROOT_URLCONF = "tools.benchmarks.plain_urls"
