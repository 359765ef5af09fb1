"""Erasures and exports whose process is killed before or after each step (docs/decisions/0374)."""

import io
import json
import subprocess
import urllib.request
import zipfile

import pytest

from tests.stack.stack import PYTHON, REPOSITORY, running_stack, wait_for

pytestmark = pytest.mark.stack

PERSON = "ada@example.com"
RUN = "from console.privacy.tasks import {task}; {task}()"
# More than the steps of an erasure or export.
MAX_RUNS = 40


def run_killed(stack, task, point):
    """Run a task in a process that is killed at a point; return whether it was."""
    command = [PYTHON, "manage.py", "shell", "--verbosity", "0", "-c", RUN.format(task=task)]
    environment = {**stack.environment, "FAULT_PLAN": point}
    code = subprocess.run(command, cwd=REPOSITORY, env=environment, capture_output=True, check=False).returncode
    assert code in {0, -9}
    return code == -9


def run_to_the_end(stack, task, point):
    """Run a task until no process is killed any more; return the number of those that were."""
    for killed in range(MAX_RUNS):
        if not run_killed(stack, task, point):
            return killed
    raise AssertionError(f"{task} does not end")


@pytest.fixture(scope="module")
def used(tmp_path_factory):
    with running_stack(tmp_path_factory.mktemp("logs")) as stack:
        stack.start("inbox", "web", "worker")
        yield stack


def send_some(stack):
    for number in range(3):
        assert stack.send(to=PERSON, subject=f"Number {number}").status == 202
        assert stack.send(to="bob@example.com", subject=f"About {PERSON}").status == 202
    assert stack.call("POST", "/suppressions", {"email": PERSON}).status in {200, 201}
    done = "SELECT count(*) FROM emails_email WHERE finished_at IS NULL"
    wait_for(lambda: stack.query(done) == [(0,)], seconds=60, what="the outcomes")


def files_of(stack, export_id):
    url = f"{stack.url}/v1/subject-exports/{export_id}/download"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {stack.key}"})
    with urllib.request.urlopen(request, timeout=60) as response, zipfile.ZipFile(io.BytesIO(response.read())) as file:
        return {name: file.read(name) for name in file.namelist()}


# Each process ends after one committed step, or redoes one whose work was not committed, and does no other.
@pytest.mark.parametrize("at", ["before_{}_commit:2", "after_{}_step:1"])
def test_an_export_and_an_erasure_that_are_killed_at_each_step_are_complete(used, at):
    send_some(used)
    export_id = used.call("POST", "/subject-exports", {"email": PERSON}).body["id"]
    steps = run_to_the_end(used, "export", f"privacy.{at.format('export')}:kill")
    assert steps >= 11
    body = used.call("GET", f"/subject-exports/{export_id}").body
    assert (body["status"], body["records"]["emails"], body["records"]["suppressions"]) == ("completed", 6, 1)
    files = files_of(used, export_id)
    assert len(json.loads(files["emails.json"])) == 6
    assert len([name for name in files if name.startswith("emails/")]) == 3
    erasure_id = used.call("POST", "/erasures", {"email": PERSON}).body["id"]
    steps = run_to_the_end(used, "erase", f"privacy.{at.format('erasure')}:kill")
    assert steps >= 11
    body = used.call("GET", f"/erasures/{erasure_id}").body
    deleted = body["deleted"]
    assert (body["status"], deleted["emails"], deleted["subjectExports"]) == ("completed", 6, 1)
    assert used.query("SELECT count(*) FROM emails_email") == [(0,)]
    assert used.query("SELECT count(*) FROM privacy_subjectexportpart") == [(0,)]
    used.execute("DELETE FROM suppressions_suppression")
