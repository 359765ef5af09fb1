"""The service's settings around the plain view of plain_urls: what the accept path is measured against."""

from config.settings import *  # noqa: F403

ROOT_URLCONF = "benchmarks.plain_urls"
