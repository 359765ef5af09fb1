"""No `data` of a log record has a field with the name of a fixed one, which it would replace in the line."""

import ast
from collections.abc import Iterator
from pathlib import Path

from config.logs import FIXED_FIELDS

REPOSITORY = Path(__file__).resolve().parents[2]
OTHERS = {"tests", "tools", "clients", "bin", ".venv"}


def records(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.expr]]:
    """Yield the `data` of each record, with the function in which it is logged."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.keyword) and node.arg == "extra":
                    assert isinstance(node.value, ast.Dict)
                    assert [ast.literal_eval(key) for key in node.value.keys if key] == ["data"]
                    yield function, node.value.values[0]


def fields(function: ast.AST, value: ast.expr) -> set[str]:
    """Return the names in a dict, or in those that the function assigns to a variable."""
    if isinstance(value, ast.Dict):
        return {ast.literal_eval(key) for key in value.keys if key}
    if isinstance(value, ast.BinOp):
        return fields(function, value.left) | fields(function, value.right)
    statements = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    assigned = [node.value for node in statements if ast.unparse(node.targets[0]) == ast.unparse(value)]
    assert assigned, f"Write the names of the fields into {ast.unparse(function)}"
    return {name for one in assigned for name in fields(function, one)}


def test_no_field_of_data_is_named_like_a_fixed_field():
    paths = [path for path in REPOSITORY.glob("*/**/*.py") if path.relative_to(REPOSITORY).parts[0] not in OTHERS]
    found = {
        str(path.relative_to(REPOSITORY)): names
        for path in paths
        if "extra=" in (source := path.read_text(encoding="utf-8"))
        for function, value in records(ast.parse(source))
        if (names := fields(function, value) & FIXED_FIELDS)
    }
    assert found == {}
