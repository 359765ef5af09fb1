"""The running service, compared with its OpenAPI document by schemathesis.

Each operation gets valid requests, invalid requests, requests without a key, with other methods or with missing
headers, and chains of requests that pass ids on; each answer must have a documented status, content type, headers
and body.
"""

import os
import subprocess
import sys

import pytest

from tests.stack.stack import REPOSITORY

pytestmark = pytest.mark.stack

EXAMPLES = "20"
REPEATABLE = ["--generation-deterministic", "--seed", "1"]
# Replaced by refused_only_by_a_known_rule, which allows the rules that JSON Schema cannot express.
EXCLUDED = "positive_data_acceptance"


def test_the_service_matches_its_openapi_document(full_stack, tmp_path):
    full_stack.call(
        "POST", "/templates", {"name": "Hello", "subject": "Hi", "htmlContent": "<p>Hi</p>", "alias": "hello"}
    )
    options = [
        *("--header", f"Authorization: Bearer {full_stack.key}"),
        # An event stream does not end.
        *("--exclude-path", "/v1/events/stream"),
        *("--checks", "all", "--exclude-checks", EXCLUDED),
        # Two workers sometimes meet https://github.com/python/cpython/issues/106905 in Python 3.11.
        *("--max-examples", EXAMPLES, "--workers", "1"),
        # A NUL in a string is refused everywhere by the parser (tests/api/test_malformed_bodies.py).
        *("--generation-allow-x00", "false"),
        # Every request has the key; ignored_auth repeats it without one.
        *("--generation-with-security-parameters", "false"),
        *(REPEATABLE if os.environ.get("CI") == "true" else ["--generation-database", "none"]),
        *("--suppress-health-check", "all", "--warnings", "off", "--no-color"),
    ]
    run = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", f"{full_stack.url}/v1/openapi.json", *options],
        cwd=tmp_path,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.stack.schemathesis_hooks",
            "PYTHONPATH": str(REPOSITORY),
            "API_KEY": full_stack.key,
            "API_URL": full_stack.url,
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
