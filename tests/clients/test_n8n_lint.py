"""The n8n nodes under n8n's linter for community nodes."""

import shutil

from tests.clients.node import need_node, run
from tests.stack.stack import REPOSITORY
from tests.standards.tools import npm_modules

# The newest versions that run on Node 20; the linter's parser does not know TypeScript 7.
# n8n-workflow is named, since npm may put it below the packages that require it, where the linter does not find it.
MODULES = ("@n8n/node-cli@0.48.3", "n8n-workflow@2.39.1", "eslint@9.39.5", "typescript@5.9.3")
# The rules ask for an author and addresses of a project that is not published yet (docs/decisions/0049).
CONFIG = """
import { config } from "@n8n/node-cli/eslint";

export default [...config, { rules: {
  "@n8n/community-nodes/require-homepage": "off",
  "@n8n/community-nodes/valid-author": "off",
  "n8n-nodes-base/community-package-json-author-missing": "off",
  "n8n-nodes-base/cred-class-field-documentation-url-missing": "off",
} }];
"""


def test_n8ns_linter_finds_nothing(tmp_path):
    need_node()
    modules = npm_modules(*MODULES)
    for name in ("credentials", "nodes"):
        shutil.copytree(REPOSITORY / "clients" / "n8n" / name, tmp_path / name)
    for name in ("package.json", "tsconfig.json"):
        shutil.copy(REPOSITORY / "clients" / "n8n" / name, tmp_path)
    (tmp_path / "node_modules").symlink_to(modules)
    (tmp_path / "eslint.config.mjs").write_text(CONFIG)
    assert run("node", "node_modules/eslint/bin/eslint.js", "--max-warnings=0", ".", cwd=tmp_path) == ""
