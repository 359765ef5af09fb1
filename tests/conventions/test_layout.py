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
    outside = ("tests/", "clients/", "bin/", "benchmarks/")
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
