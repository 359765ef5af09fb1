"""Sample: a public template and the data of an email with it, read from a bare git repository."""

import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from os.path import commonprefix
from pathlib import Path
from typing import Any

# A scalar of a model becomes such a text: it needs escaping, other encodings than ASCII, and no interpretation.
AWKWARD = " <b>\"é\"</b> 'a' & b=`c` €😀 {{name}} \\"


@dataclass(frozen=True)
class Sample:
    """A template with its data.

    subject, html, text: sources in the language of the service; a part may be empty.
    expected: the parts that the engine of the service renders.
    layout: the HTML and text around them, if they have a layout.
    """

    name: str
    subject: str
    html: str
    text: str
    model: dict[str, Any]
    expected: dict[str, str] = field(default_factory=dict)
    layout: tuple[str, str] | None = None

    @property
    def parts(self) -> dict[str, str]:
        return {"subject": self.subject, "html": self.html, "text": self.text}


@dataclass(frozen=True)
class Repository:
    """A bare git repository. Its largest files may be absent."""

    path: Path

    def files(self, folder: str = "") -> list[str]:
        return self._git("ls-tree", "-r", "--name-only", "HEAD", folder or ".").splitlines()

    def read(self, name: str) -> str:
        return self._git("show", f"HEAD:{name}")

    def _git(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self.path}", *arguments]
        return subprocess.run(command, capture_output=True, check=True).stdout.decode()


def postmark_sources(repository: Repository) -> Iterator[Sample]:
    """Yield the templates of ActiveCampaign/postmark-templates, which have no subjects and no models."""
    names = [name for name in repository.files() if name.endswith("/content.html")]
    for name in names:
        html, text = repository.read(name), repository.read(name.removesuffix("html") + "txt")
        yield Sample(name.removesuffix("/content.html"), "About {{name}}: {{{name}}}", html, text, {})


def sendgrid_sources(repository: Repository) -> Iterator[Sample]:
    """Yield the templates of sendgrid/email-templates, each with each of its models and with awkward values."""
    for name in (name for name in repository.files() if name.endswith(".html")):
        html, folder = repository.read(name), f"{name.rpartition('/')[0]}/"
        models = [file for file in repository.files(folder) if file.endswith(".json")]
        for data in models or [""]:
            model = json.loads(repository.read(data)) if data else {}
            subject = "About {{header}}: {{{header}}}"
            title = f"{name.removesuffix('.html')} {data.rpartition('/')[2]}".strip()
            # Its source is the text, too, for the rules of texts.
            yield Sample(title, subject, html, html, model)
            if model:
                yield Sample(f"{title} awkward", subject, html, html, awkward(model))


def with_layouts(samples: list[Sample]) -> list[Sample]:
    """Return the samples with the lines that those of a folder share in a layout, as they are in Postmark's editor.

    Together they are the template as it was, and so is what the engine renders.
    """
    folders: dict[str, list[Sample]] = {}
    for sample in samples:
        folders.setdefault(sample.name.rpartition("/")[0], []).append(sample)
    return [divided for group in folders.values() for divided in _divided(group)]


def _divided(group: list[Sample]) -> Iterator[Sample]:
    html_frame, text_frame = (_frame([getattr(sample, part) for sample in group]) for part in ("html", "text"))
    for sample in group:
        html, text = _inner(sample.html, html_frame), _inner(sample.text, text_frame)
        layout = tuple("{{{@content}}}".join(frame) for frame in (html_frame, text_frame))
        yield replace(sample, html=html, text=text, layout=(layout[0], layout[1]))


def _frame(sources: list[str]) -> tuple[str, str]:
    """Return the whole lines at the start and at the end that all sources share, without unclosed sections."""
    start = commonprefix(sources)  # noqa: RUF071 - characters are meant
    start = start[: start.rfind("\n") + 1]
    end = commonprefix([source[len(start) :][::-1] for source in sources])[::-1]  # noqa: RUF071
    end = end[end.find("\n") + 1 :] if "\n" in end else ""
    while start.count("{{#") + start.count("{{^") != start.count("{{/"):
        start = start[: start.rfind("\n", 0, -1) + 1]
    while end.count("{{#") + end.count("{{^") != end.count("{{/"):
        end = end[end.find("\n") + 1 :]
    return start, end


def _inner(source: str, frame: tuple[str, str]) -> str:
    return source[len(frame[0]) : len(source) - len(frame[1])]


def awkward(value: Any) -> Any:
    """Return a model with texts that need escaping, and with each list twice as long."""
    if isinstance(value, dict):
        return {name: awkward(item) for name, item in value.items()}
    if isinstance(value, list):
        return [awkward(item) for item in value * 2]
    return value + AWKWARD if isinstance(value, str) else value
