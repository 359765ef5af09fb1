"""Files with the content of templates, which plans and differences show.

In CI, a pull request names any file of the machine, or makes a link to one. The output must not show its secrets.
"""

from pathlib import Path

HTML_SUFFIXES = (".html", ".htm")
TEXT_SUFFIXES = (".txt", ".text")


def find_content_file(file: str, directory: Path, *, suffixes: tuple[str, ...]) -> Path:
    """Return the path of a file in a directory or below, after links are resolved.

    Raises ValueError for a path elsewhere, a hidden one, another suffix, and what is not a regular file; OSError.
    """
    root = directory.resolve()
    path = (root / file).resolve()
    if root not in path.parents:
        raise ValueError(f"It must be in the directory {directory} or below.")
    if any(part.startswith(".") for part in path.relative_to(root).parts):
        raise ValueError("Hidden files and directories are not read.")
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"Its name must end in {' or '.join(suffixes)}.")
    if path.exists() and not path.is_file():
        raise ValueError("It is not a file.")
    return path
