"""The running service, compared with its OpenAPI document by schemathesis.

Each operation gets valid requests, invalid requests, requests without a key, with other methods or with missing
headers, and chains of requests that pass ids on; each answer must have a documented status, content type, headers
and body.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stack.stack import REPOSITORY, Stack

pytestmark = pytest.mark.stack

EXAMPLES = "20"
REPEATABLE = ["--generation-deterministic", "--seed", "1"]
# Replaced by refused_only_by_a_known_rule, which allows the rules that JSON Schema cannot express.
EXCLUDED = "positive_data_acceptance"


def test_the_service_matches_its_openapi_document(full_stack, tmp_path):
    full_stack.call(
        "POST", "/templates", {"name": "Hello", "subject": "Hi", "htmlContent": "<p>Hi</p>", "alias": "hello"}
    )
    # An event stream does not end.
    excluded = (
        *("--exclude-path", "/v1/events/stream", "--exclude-path-regex", "^/v1/admin"),
        *("--exclude-checks", EXCLUDED),
    )
    run_schemathesis(full_stack, tmp_path, *excluded, key=full_stack.key)


def test_the_management_api_matches_its_openapi_document(full_stack, tmp_path):
    made = json.loads(full_stack.manage("create_management_key", "--name", "test", "--group", "schemathesis"))
    # A deleted workspace is still there until it is erased, and so is a revoked key.
    chosen = ("--include-path-regex", "^/v1/admin", "--exclude-checks", f"{EXCLUDED},use_after_free")
    run_schemathesis(full_stack, tmp_path, *chosen, key=made["key"])


def run_schemathesis(stack: Stack, folder: Path, *chosen: str, key: str) -> None:
    options = [
        *chosen,
        *("--header", f"Authorization: Bearer {key}"),
        *("--checks", "all"),
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
        [sys.executable, "-m", "schemathesis.cli", "run", f"{stack.url}/v1/openapi.json", *options],
        cwd=folder,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.stack.schemathesis_hooks",
            "PYTHONPATH": str(REPOSITORY),
            "API_KEY": key,
            "API_URL": stack.url,
        },
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
