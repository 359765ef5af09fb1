"""Environment of the tests: a separate Redis database for each process of a parallel run, no collected static files.

Loaded by `-p` in pyproject.toml: the settings read REDIS_URL before any conftest is imported.
"""

import os
import re

# The live server of pytest-django serves plain names only.
os.environ["STATIC_ROOT"] = "/nonexistent"
worker = os.environ.get("PYTEST_XDIST_WORKER", "")
if worker and "REDIS_URL" in os.environ:
    base = re.sub(r"/\d+$", "", os.environ["REDIS_URL"])
    os.environ["REDIS_URL"] = f"{base}/{int(worker.removeprefix('gw')) + 1}"
