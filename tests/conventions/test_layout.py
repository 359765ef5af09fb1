"""The layout rules: small packages, one class for each name, no import cycle, one form of log details."""

import ast
import graphlib
import re
import subprocess
from collections import defaultdict
from pathlib import Path

import pytest

from tests.stack.stack import REPOSITORY

MODULES_OF_A_PACKAGE = 18
# Django's own names for an inner class and a management command.
DJANGO_NAMES = {"Meta", "Command"}


@pytest.fixture(scope="module")
def product() -> dict[str, ast.Module]:
    """Return the parsed modules of the product by dotted name."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=REPOSITORY, check=True, capture_output=True, text=True)
    outside = ("tests/", "clients/", "bin/", "tools/benchmarks/")
    paths = [
        Path(name) for name in listed.stdout.split() if not name.startswith(outside) and "/migrations/" not in name
    ]
    return {dotted(path): ast.parse((REPOSITORY / path).read_text("utf-8")) for path in paths}


def dotted(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def test_no_package_has_too_many_modules(product):
    modules = defaultdict(list)
    for name in product:
        modules[name.rpartition(".")[0]].append(name)
    packages = {package for package in modules if package}
    crowded = {
        package: len(names) + 1
        for package, names in modules.items()
        if package and len([name for name in names if name not in packages]) + 1 > MODULES_OF_A_PACKAGE
    }
    assert crowded == {}


def test_every_class_name_is_defined_once(product):
    places = defaultdict(list)
    for name, tree in product.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name not in DJANGO_NAMES:
                places[node.name].append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_no_module_imports_itself_through_others(product):
    graph = {name: imports_of(tree, product) - {name} for name, tree in product.items()}
    graphlib.TopologicalSorter(graph).prepare()


def test_the_details_of_log_lines_are_in_data(product):
    """config.logs writes the members of `extra={"data": {…}}`, nothing else."""
    given = [
        (name, ast.unparse(keyword.value))
        for name, tree in product.items()
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        for keyword in call.keywords
        if keyword.arg == "extra"
    ]
    assert given
    assert [(name, text) for name, text in given if not re.fullmatch(r"\{'data': (\{.+\}|data|details)\}", text)] == []


def imports_of(tree: ast.Module, product: dict[str, ast.Module]) -> set[str]:
    """Return the modules that a module imports anywhere, also in a function or for types only."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in product else node.module)
    return found & product.keys()


def texts_of(module: ast.Module) -> list[str]:
    """Return the string literals of a module; a formatted value is {}."""
    parts = {id(value) for node in ast.walk(module) if isinstance(node, ast.JoinedStr) for value in node.values}
    texts = []
    for node in ast.walk(module):
        if isinstance(node, ast.JoinedStr):
            texts.append("".join(v.value if isinstance(v, ast.Constant) else "{}" for v in node.values))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts:
            texts.append(node.value)
    return texts


def limits_in_conditions(sql: str) -> list[str]:
    """Return the lists of `IN (SELECT …)` that lock rows: a plan may run them once for each row of the table."""
    found = []
    for match in re.finditer(r"\bIN\s*\(\s*SELECT\b", sql):
        depth, end = 1, sql.index("(", match.start()) + 1
        while depth and end < len(sql):
            depth += {"(": 1, ")": -1}.get(sql[end], 0)
            end += 1
        if "SKIP LOCKED" in sql[match.start() : end]:
            found.append(sql[match.start() : end])
    return found


def test_rows_are_locked_in_a_common_table_expression(product):
    """Its rows are read once, whatever the plan (docs/decisions/0066)."""
    assert limits_in_conditions(
        "DELETE FROM a WHERE id IN (SELECT id FROM a LIMIT (1) FOR UPDATE SKIP LOCKED) RETURNING id"
    )
    assert not limits_in_conditions(
        "WITH b AS (SELECT 1 FOR UPDATE SKIP LOCKED) DELETE FROM a WHERE id IN (SELECT id FROM b)"
    )
    found = {name: [*map(limits_in_conditions, texts_of(module))] for name, module in product.items()}
    assert {name: [x for x in lists if x] for name, lists in found.items() if any(lists)} == {}
