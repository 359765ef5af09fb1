"""A field of send is declared once: the recipe "Add a field" in CONTRIBUTING.md stays true."""

import re
import subprocess
from dataclasses import fields
from pathlib import Path

import pytest

from emails.accept.drafts import Draft
from emails.accept.insertion import SHARED_COLUMNS
from emails.models import Email
from emails.send_options import SendOptions
from emails.sending.jobs import MEMORY_BYTES, SendJob, load_jobs
from tests.conftest import Api, mail
from tests.emails.builders import claim_entries
from tests.rows import each
from tests.stack.stack import REPOSITORY

OPTIONS = [option.name for option in fields(SendOptions)]
# The declaration, the column, the field of the request, and the place where it has an effect; for a field that
# responses show, their serializer.
CORE_FILES = 5
VALUES = {
    "tags": ["a"], "headers": {"X-Order": "7"}, "track_opens": False, "track_clicks": False, "stream": "main",
    "locale": "de-AT", "sensitive": True, "tls": "required",
}  # fmt: skip


def camel_case(name: str) -> str:
    return re.sub("_(.)", lambda match: match[1].upper(), name)


@each("name", ["track_opens", "track_clicks"])
def test_at_most_five_core_files_name_a_field(name: str):
    pattern = rf"\b({name}|{camel_case(name)})\b"
    command = ["git", "grep", "-lP", pattern, "--", "emails/*.py", "core/delivery/*.py", "events/*.py", "domains/*.py"]
    named = subprocess.run(command, cwd=REPOSITORY, check=True, capture_output=True, text=True).stdout.split()
    core = [path for path in named if "/migrations/" not in path and not Path(path).name.startswith("openapi")]
    assert len(core) <= CORE_FILES, core


def test_each_option_is_a_column_a_field_of_a_draft_and_of_a_send_job():
    assert set(OPTIONS) <= {column.attname for column in Email._meta.concrete_fields}
    for form in (Draft, SendJob):
        assert set(OPTIONS) <= {field.name for field in fields(form)}
    assert SHARED_COLUMNS.keys() >= set(OPTIONS)


@pytest.mark.django_db
def test_each_option_of_a_request_reaches_the_send_job(api: Api):
    assert set(VALUES) == set(OPTIONS)
    values = {camel_case(name): value for name, value in VALUES.items()}
    assert api.post("/emails/send", mail(**values)).status_code == 202
    (job,) = load_jobs(claim_entries(10), memory_bytes=MEMORY_BYTES)
    assert {name: getattr(job, name) for name in OPTIONS} == VALUES
