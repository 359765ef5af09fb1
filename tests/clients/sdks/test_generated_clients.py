"""The programs of the guide "Generated clients", with clients generated from the document of the running service."""

import json
import os
import shutil
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from tests.clients.faulty import Answer, proxy
from tests.clients.node import need_node, run
from tests.clients.sdks.conftest import received
from tests.stack.stack import REPOSITORY
from tests.standards.tools import npm_modules

pytestmark = pytest.mark.stack

GUIDE = (REPOSITORY / "docs/guides/generated-clients.md").read_text("utf-8")
BLOCKS = [(token.info, token.content) for token in MarkdownIt("commonmark").parse(GUIDE) if token.type == "fence"]
PYTHON_CLIENT, TYPESCRIPT_TYPES = (text for language, text in BLOCKS if language == "sh")
CONFIGURATION, PYTHON, TYPESCRIPT = (
    next(text for language, text in BLOCKS if language == name) for name in ("yaml", "python", "typescript")
)
# Errors of types: a field that does not exist, a missing one, and the member of another error.
WRONG = """
import type { components } from "./postrider.js";
type SendInput = components["schemas"]["SendInput"];
// @ts-expect-error
export const unknown: SendInput = { from: "a@b.example", recipient: "c@d.example" };
// @ts-expect-error
export const missing: SendInput = { to: "c@d.example" };
type Problems = components["schemas"];
type Known = Problems["NotFoundProblem"] | Problems["DomainNotRegisteredProblem"];
export function show(error: Known | Problems["OtherProblem"]) {
  if (error.code === "domain_not_registered") return error.domain;
  // @ts-expect-error
  return error.domain;
}
"""
# An error of a later version.
LATER = """
import os
from postrider_api import AuthenticatedClient
from postrider_api.api.emails import send_email
from postrider_api.models import OtherError, SendInput

client = AuthenticatedClient(base_url=os.environ["POSTRIDER_URL"], token="pr_x")
error = send_email.sync(client=client, body=SendInput(from_="a@b.example", to="c@d.example", subject="Hi", text="Hi"))
assert type(error) is OtherError, error
print(error.status, error.code, error.detail, error.additional_properties)
"""
MODULES = ("openapi-typescript@7.13.0", "openapi-fetch@0.17.0", "typescript@5.9.3", "@types/node@20.19.43")
TSC = ("--strict", "--noUncheckedIndexedAccess", "--module", "nodenext", "--target", "es2022", "--types", "node")


@pytest.fixture
def environment(stack):
    return {**os.environ, "POSTRIDER_URL": stack.url, "POSTRIDER_API_KEY": stack.key, "PYTHONPATH": ""}


def assert_invoice_arrived(stack, *, language, output):
    message = received(stack, f"{language}@example.com")
    assert message["Subject"] == "Your invoice"
    assert [part.get_content().strip() for part in message.iter_attachments()] == ["12 EUR"]
    assert f"{language}@example.com" in output
    assert "domain_not_registered unknown.example" in output


def test_openapi_python_client_sends_an_email_with_typed_fields(python, stack, tmp_path, environment):
    (tmp_path / "client.yaml").write_text(CONFIGURATION)
    (tmp_path / "send.py").write_text(PYTHON)
    path = f"{Path(python).parent}:{environment['PATH']}"
    command = PYTHON_CLIENT.rstrip() + " --fail-on-warning"
    run("bash", "-euc", command, cwd=tmp_path, env={**environment, "PATH": path})
    output = run(python, "send.py", cwd=tmp_path, env=environment)
    assert_invoice_arrived(stack, language="python", output=output)
    members = {"type": "https://mail.example/docs/errors#later", "title": "Later", "requestId": "req_1", "limit": 7}
    problem = {"status": 422, "code": "later", "detail": "This came later.", **members}
    answer = Answer(422, {"Content-Type": "application/problem+json"}, json.dumps(problem).encode())
    (tmp_path / "later.py").write_text(LATER)
    with proxy(stack.url, answer) as newer:
        output = run(python, "later.py", cwd=tmp_path, env={**environment, "POSTRIDER_URL": newer.url})
    assert output.strip() == "422 later This came later. {'limit': 7}"


def test_openapi_typescript_sends_an_email_with_typed_fields(stack, tmp_path, environment):
    need_node()
    modules = npm_modules(*MODULES)
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "send.ts").write_text(TYPESCRIPT)
    (tmp_path / "wrong.ts").write_text(WRONG)
    path = f"{modules / '.bin'}:{environment['PATH']}"
    run("bash", "-euc", TYPESCRIPT_TYPES, cwd=tmp_path, env={**environment, "PATH": path})
    run(str(modules / ".bin/tsc"), *TSC, "send.ts", "wrong.ts", cwd=tmp_path)
    output = run(str(shutil.which("node")), "send.js", cwd=tmp_path, env=environment)
    assert_invoice_arrived(stack, language="typescript", output=output)
