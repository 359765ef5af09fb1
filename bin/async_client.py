"""Generate the asynchronous modules of the Python library from the synchronous ones (docs/decisions/0125).

    python bin/async_client.py [--check]

Classes and functions that use the transport are rewritten; everything else is imported from the synchronous module.
--check changes no file and fails if a module is out of date.
"""

import argparse
import ast
import subprocess
import sys
from pathlib import Path

LIBRARY = Path(__file__).resolve().parent.parent / "clients/python/src/postrider_client"
PACKAGE = "postrider_client"
MODULES = (
    "alerts", "client", "domains", "emails", "events", "inbound", "listing", "numbers",
    "streams", "suppressions", "templates", "webhooks", "workspaces",
)  # fmt: skip
SPECIAL_METHODS = {"__iter__": "__aiter__", "__enter__": "__aenter__", "__exit__": "__aexit__"}
# Methods of `self` and `self._transport` that must be awaited.
AWAITED = {"json", "reply", "close", "fetch", "_page"}
TEXTS = {"Threads may share it.": "All tasks of one event loop may share it."}
RUFF = [sys.executable, "-m", "ruff"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="change no file")
    is_check = parser.parse_args().check
    generated = {LIBRARY / "aio" / f"{name}.py": generate(name) for name in MODULES}
    stale = {path: text for path, text in generated.items() if not path.exists() or path.read_text("utf-8") != text}
    if is_check:
        sys.exit("\n".join(f"{path.name} is out of date; run bin/async_client.py" for path in stale) or 0)
    for path, text in stale.items():
        path.write_text(text, "utf-8")


def generate(name: str) -> str:
    """Return the asynchronous module for a synchronous one."""
    tree = ast.parse((LIBRARY / f"{name}.py").read_text("utf-8"))
    docstring, *statements = [statement for node in tree.body for statement in rewritten(node, name)]
    tree.body = [docstring, *sorted(statements, key=lambda statement: not isinstance(statement, ast.ImportFrom))]
    header = f"# Generated from {name}.py by bin/async_client.py.\n"
    source = header + ast.unparse(ast.fix_missing_locations(tree))
    path = str(LIBRARY / "aio" / f"{name}.py")
    checked = ruff("check", "--quiet", "--fix-only", "--select", "F401,I", "--stdin-filename", path, "-", source=source)
    return ruff("format", "--quiet", "--stdin-filename", path, "-", source=checked)


def ruff(*arguments: str, source: str) -> str:
    done = subprocess.run([*RUFF, *arguments], input=source, capture_output=True, text=True, check=True)
    return done.stdout


def rewritten(node: ast.stmt, module: str) -> list[ast.stmt]:
    """Return the statements that replace a top-level statement."""
    if isinstance(node, ast.ImportFrom):
        return list(map(import_of, split(node)))
    shared = shared_name(node)
    if shared and shared not in async_names(module):
        return [ast.ImportFrom(f"{PACKAGE}.{module}", [ast.alias(shared)], 0)]
    return [AsyncCode().visit(node)]


def split(node: ast.ImportFrom) -> list[ast.ImportFrom]:
    return [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]


def import_of(node: ast.ImportFrom) -> ast.ImportFrom:
    """Return an import of one name, from the asynchronous module if it has the name."""
    package, _, module = (node.module or "").rpartition(".")
    (alias,) = node.names
    if package == PACKAGE and alias.name in async_names(module):
        return ast.ImportFrom(f"{PACKAGE}.aio.{module}", [ast.alias(renamed(alias.name), alias.asname)], 0)
    if node.module == "collections.abc" and alias.name == "Iterator":
        return ast.ImportFrom(node.module, [ast.alias("AsyncGenerator")], 0)
    return node


def shared_name(node: ast.stmt) -> str | None:
    """Return the name that a top-level statement defines; None for a docstring or a type variable."""
    if isinstance(node, ast.ClassDef | ast.FunctionDef):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return None


def async_names(module: str) -> set[str]:
    """Return the names of a module that use the transport."""
    if module == "transport":
        return {"Transport"}
    if module not in MODULES:
        return set()
    tree = ast.parse((LIBRARY / f"{module}.py").read_text("utf-8"))
    definitions = (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return {node.name for node in definitions if "transport" in ast.unparse(node).lower()}


CLASSES = {name for module in ("transport", *MODULES) for name in async_names(module) if name[0].isupper()}


def renamed(name: str) -> str:
    return f"Async{name}" if name in CLASSES else name


class AsyncCode(ast.NodeTransformer):
    """Rewrites a class or function that uses the transport."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        self.generic_visit(node)
        is_async = node.name in SPECIAL_METHODS or any(isinstance(one, ast.Await) for one in ast.walk(node))
        node.name = SPECIAL_METHODS.get(node.name, node.name)
        return ast.AsyncFunctionDef(**vars(node)) if is_async else node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.stmt:
        self.generic_visit(node)
        node.name = renamed(node.name)
        return node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Attribute) and function.attr in AWAITED:
            return ast.Await(node) if ast.unparse(function.value) in {"self", "self._transport"} else node
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """Replace `yield from`, which an asynchronous generator cannot contain."""
        self.generic_visit(node)
        if not isinstance(node.value, ast.YieldFrom):
            return node
        item = ast.Yield(ast.Name("item"))
        return ast.For(ast.Name("item"), node.value.value, [ast.Expr(item)], [])

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        self.generic_visit(node)
        if ast.unparse(node.value) == "Iterator":
            return ast.parse(f"AsyncGenerator[{ast.unparse(node.slice)}, None]", mode="eval").body
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Name(renamed(node.id), node.ctx)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Replace texts and annotations that are strings."""
        if isinstance(node.value, str):
            text = renamed(node.value)
            for old, new in TEXTS.items():
                text = text.replace(old, new)
            return ast.Constant(text)
        return node


if __name__ == "__main__":
    main()
