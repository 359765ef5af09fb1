"""What the OpenAPI document promises, held against the running service by schemathesis.

Each operation gets requests that follow its schema, requests that break it, requests without a key, of other
methods, with headers missing, and chains of requests that hand ids to one another; each answer must have a
status, a type, headers and a body that the document tells of.
"""

import os
import subprocess
import sys

import pytest

from tests.stack.stack import REPOSITORY

pytestmark = pytest.mark.stack

EXAMPLES = "20"
REPEATABLE = ["--generation-deterministic", "--seed", "1"]
# Replaced by refused_by_a_rule_alone, which knows the rules that JSON Schema cannot tell.
EXCLUDED = "positive_data_acceptance"


def test_the_service_does_what_its_document_says(whole_stack, tmp_path):
    whole_stack.call(
        "POST", "/templates", {"name": "Hello", "subject": "Hi", "htmlContent": "<p>Hi</p>", "alias": "hello"}
    )
    options = [
        *("--header", f"Authorization: Bearer {whole_stack.key}"),
        *("--checks", "all", "--exclude-checks", EXCLUDED),
        *("--max-examples", EXAMPLES, "--workers", "2"),
        # A NUL in a string is refused everywhere, by one rule of the parser (tests/api/test_malformed_bodies.py).
        *("--generation-allow-x00", "false"),
        # Every request carries the key, so that none is without one by chance; ignored_auth asks again without.
        *("--generation-with-security-parameters", "false"),
        *(REPEATABLE if os.environ.get("CI") == "true" else ["--generation-database", "none"]),
        *("--suppress-health-check", "all", "--warnings", "off", "--no-color"),
    ]
    run = subprocess.run(
        [sys.executable, "-m", "schemathesis.cli", "run", f"{whole_stack.url}/v1/openapi.json", *options],
        cwd=tmp_path,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.stack.schemathesis_hooks",
            "PYTHONPATH": str(REPOSITORY),
            "API_KEY": whole_stack.key,
            "API_URL": whole_stack.url,
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
