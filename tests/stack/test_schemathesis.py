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
from zlib import crc32

import pytest

from tests.stack.stack import REPOSITORY, Stack

pytestmark = pytest.mark.stack

EXAMPLES = "20"
REPEATABLE = ["--generation-deterministic", "--seed", "1"]
# Replaced by refused_only_by_a_known_rule, which allows the rules that JSON Schema cannot express.
EXCLUDED = "positive_data_acceptance"
# The coverage phase takes most of the time. A full run has it for a fifth of the operations, which depends on the
# commit; a long one for all.
IN_TURN = 5
RUNS = pytest.mark.parametrize(
    ("phases", "in_turn"),
    [("examples,fuzzing,stateful", 1), ("coverage", IN_TURN), pytest.param("coverage", 1, marks=pytest.mark.long)],
)


@RUNS
def test_the_service_matches_its_openapi_document(full_stack, tmp_path, phases, in_turn):
    full_stack.call(
        "POST", "/templates", {"name": "Hello", "subject": "Hi", "htmlContent": "<p>Hi</p>", "alias": "hello"}
    )
    operations = choose_operations(full_stack, in_turn=in_turn, is_management=False)
    chosen = ("--exclude-checks", EXCLUDED, "--phases", phases)
    run_schemathesis(full_stack, tmp_path, *chosen, key=full_stack.key, operations=operations)


@RUNS
def test_the_management_api_matches_its_openapi_document(full_stack, tmp_path, phases, in_turn):
    made = json.loads(full_stack.manage("create_management_key", "--name", "test", "--group", "schemathesis"))
    # A deleted workspace is still there until it is erased, and so is a revoked key.
    operations = choose_operations(full_stack, in_turn=in_turn, is_management=True)
    chosen = ("--exclude-checks", f"{EXCLUDED},use_after_free", "--phases", phases)
    run_schemathesis(full_stack, tmp_path, *chosen, key=made["key"], operations=operations)


def choose_operations(stack: Stack, *, in_turn: int, is_management: bool) -> list[str]:
    """Return the ids of one of `in_turn` equal parts of the operations, another one after each commit."""
    shown = subprocess.run(["git", "rev-parse", "HEAD"], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    # An archive has no commit.
    turn = int(shown.stdout or "0", 16) % in_turn
    ids = [
        operation["operationId"]
        for path, operations in stack.call("GET", "/openapi.json").body["paths"].items()
        # An event stream does not end.
        if path.startswith("/v1/admin") == is_management and path != "/v1/events/stream"
        for operation in operations.values()
    ]
    return [one for one in ids if crc32(one.encode()) % in_turn == turn]


def run_schemathesis(stack: Stack, folder: Path, *chosen: str, key: str, operations: list[str]) -> None:
    options = [
        *chosen,
        *(f"--include-operation-id={operation}" for operation in operations),
        *("--header", f"Authorization: Bearer {key}"),
        *("--checks", "all"),
        # Two workers sometimes meet https://github.com/python/cpython/issues/106905 in Python 3.11.
        *("--max-examples", EXAMPLES, "--workers", "1"),
        # A NUL in a string is refused everywhere by the parser (tests/core/api/test_malformed_bodies.py).
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
