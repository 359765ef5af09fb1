"""Check the prose of the repository: replaced words, and how often some constructions appear.

    bin/prose.py [--worst N] [PATH ...]

Reads docstrings, comments and sentences in Python files, Markdown, HTML templates and text files. Fails if a replaced
word is left (docs/glossary.md has the terms), if a rate per 1,000 words is above its limit, if a line of Markdown
outside tables and code is longer than 120 characters, if a comment begins with "Of", or if a docstring that describes
several arguments or fields has no line for each.
"""

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

LINE_LIMIT = 120
# Occurrences per 1,000 words. Django REST framework, Celery and django-anymail stay below all of them.
LIMITS = {"free relative": 1.5, "told": 0.5, "of its own": 0.3, "he for a person": 0.1}
CONSTRUCTIONS = {
    "free relative": re.compile(
        r"\b(what|whatever|whoever|whom)\b|(?<!people )(?<!those )(?<!anyone )(?<!users )(?<!person )(?<!, )\bwho\b",
        re.IGNORECASE,
    ),
    "told": re.compile(r"\b(told|tells?)\b", re.IGNORECASE),
    "of its own": re.compile(r"\bof (its|his|their|our|one's) own\b", re.IGNORECASE),
    "he for a person": re.compile(r"\b(he|his|him)\b", re.IGNORECASE),
}
# Packed docstrings that are left in tests; elsewhere there are none, and no comment begins with "Of".
REMAINING = {"tests/": 25}
ARGUMENT = re.compile(r"(^|\n|[.;] )`?(\w+)`?(?:(?:,| and) `?\w+`?)*: ")
REPLACED = {
    "bell": "wake-up",
    "rung": "notified",
    "ring for": "notify",
    "parcel": "send job",
    "parcels": "send jobs",
    "letter": "outgoing message",
    "letters": "outgoing messages",
    "consignment": "delivery request",
    "consign": "build a delivery request",
    "lane": "destination, endpoint share",
    "lanes": "destinations, endpoint shares",
    "setback": "SMTP error",
    "setbacks": "SMTP errors",
    "opener": "session factory",
    "insiders": "internal access",
    "furniture": "fixtures",
    "furnish": "fixtures",
    "door": "endpoint, URL, page",
    "doors": "endpoints, URLs, pages",
    "senseless": "invalid",
    "in relief": "standby",
    "becomes of": "outcome, status",
    "became of": "outcome, status",
    "the service itself": "system email",
    "sentence that says": "a message saying",
    "handed over": "sent",
    "hand-over": "delivery attempt",
    "hand over": "send",
    "whoever runs": "the operator",
    "slip of the": "typo",
    "moment": "time, timestamp",
}
REPLACED_PATTERN = re.compile(
    r"\b(" + "|".join(map(re.escape, sorted(REPLACED, key=len, reverse=True))) + r")\b", re.IGNORECASE
)
SKIPPED = re.compile(r"(^|/)(node_modules|migrations|locale|corpus|samples)(/|$)|requirements.*\.txt|\.min\.")
SUFFIXES = (".py", ".md", ".html", ".txt")
WORD = re.compile(r"[A-Za-z][A-Za-z'-]*")
MARKUP = re.compile(r"{[{%#].*?[}%#]}|<[^>]*>|`[^`]*`|\]\([^)]*\)")
SQL = re.compile(r"\b(SELECT|INSERT|UPDATE|DELETE|WITH|CREATE|VALUES|WHERE)\b")
MINIMUM_SPACES = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*")
    parser.add_argument("--worst", type=int, default=20, help="sentences to print when a rate is too high")
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    words = 0
    errors: list[str] = []
    suspects: list[str] = []
    style: list[str] = []
    for path in tracked_files(options.paths):
        errors += long_lines(path) if path.suffix == ".md" else []
        if SKIPPED.search(path.as_posix()):
            continue
        style += [f"{path}:{line}: {error}" for line, error in style_errors(path)]
        for line, text in prose_of(path):
            words += len(WORD.findall(text))
            found = {name: len(pattern.findall(text)) for name, pattern in CONSTRUCTIONS.items()}
            counts.update(found)
            if any(found.values()):
                suspects.append(f"{path}:{line}: {' '.join(text.split())[:160]}")
            # This file lists the replaced words.
            if path != Path("bin/prose.py"):
                errors += [f"{path}:{line}: {word!r}: write {REPLACED[word.lower()]}" for word in replaced_words(text)]
    for folder, most in {**REMAINING, "": 0}.items():
        in_folder = [error for error in style if error.startswith(folder)]
        style = [error for error in style if not error.startswith(folder)]
        errors += in_folder if len(in_folder) > most else []
    rates = {name: 1000 * counts[name] / max(words, 1) for name in LIMITS}
    too_high = [name for name, rate in rates.items() if rate > LIMITS[name]]
    if too_high:
        errors += suspects[: options.worst]
        errors += [f"{name}: {rates[name]:.1f} per 1,000 words, at most {LIMITS[name]}" for name in too_high]
    sys.stdout.writelines(f"{error}\n" for error in errors)
    return int(bool(errors))


def tracked_files(paths: list[str]) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "--", *paths], check=True, capture_output=True, text=True).stdout
    return [path for name in listed.splitlines() if (path := Path(name)).suffix in SUFFIXES and path.exists()]


def replaced_words(text: str) -> list[str]:
    return REPLACED_PATTERN.findall(text)


def long_lines(path: Path) -> list[str]:
    """Return an error for each overlong line outside of code blocks and tables."""
    errors, is_code = [], False
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        if len(line) > LINE_LIMIT and not is_code and not line.startswith("|"):
            errors.append(f"{path}:{number}: {len(line)} characters, at most {LINE_LIMIT}")
    return errors


def style_errors(path: Path) -> Iterator[tuple[int, str]]:
    """Yield an error for each comment that begins with "Of" and each packed docstring, with its line."""
    source = path.read_text(encoding="utf-8") if path.suffix == ".py" else ""
    for number, line in enumerate(source.splitlines(), 1):
        if re.search(r"(^|  )# Of ", line):
            yield number, 'a comment begins with "Of"'
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and is_packed(node):
            yield node.lineno, "write a line for each argument"


def is_packed(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    names = {str(getattr(one, "arg", getattr(one, "id", getattr(one, "name", "")))).lower() for one in ast.walk(node)}
    described = [match[1] for match in ARGUMENT.finditer(ast.get_docstring(node) or "") if match[2].lower() in names]
    return len(described) > 1 and any(before.strip() for before in described)


def prose_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each piece of prose."""
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from python_prose(source)
        return
    for number, line in enumerate(source.splitlines(), 1):
        yield number, MARKUP.sub(" ", line)


def python_prose(source: str) -> Iterator[tuple[int, str]]:
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and is_sentence(node.value):
            yield node.lineno, re.sub(r"`[^`]*`", " ", node.value)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT and "noqa" not in token.string:
            yield token.start[0], token.string.lstrip("# ")


def is_sentence(text: str) -> bool:
    return text.count(" ") >= MINIMUM_SPACES and not SQL.search(text)


if __name__ == "__main__":
    sys.exit(main())
