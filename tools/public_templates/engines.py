"""Engines of other services: Mustachio with Mono, Handlebars and React Email with Node.js."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from tools.public_templates.samples import Repository, Sample, awkward

SCRIPTS = Path(__file__).parent / "engines"
PACKAGES = ("handlebars@4", "react@19", "react-dom@19", "react-email@6", "tailwindcss@3", "esbuild@0.28", "mjml@4")
MCS = ("mcs", "-langversion:7", "-r:System.Web.dll", "-r:System.Web.Extensions.dll", "-out:mustachio.exe")


class Engines:
    """The engines, in a folder outside of the repository."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def install_node(self) -> None:
        """Install the packages, and copy the scripts beside them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for script in SCRIPTS.glob("*.?js"):
            shutil.copy(script, self.folder)
        if not (self.folder / "node_modules").exists():
            self._run("npm", "install", "--no-audit", "--no-fund", "--prefix", ".", *PACKAGES)

    def install_mustachio(self, repository: Repository) -> None:
        """Compile Mustachio from its sources."""
        sources = self.folder / "mustachio"
        sources.mkdir(parents=True, exist_ok=True)
        shutil.copy(SCRIPTS / "mustachio.cs", sources / "Program.cs")
        for name in repository.files("Mustachio/"):
            if name.endswith(".cs"):
                (sources / Path(name).name).write_text(repository.read(name))
        self._run(*MCS, *(str(path) for path in sources.glob("*.cs")))

    def mustachio(self, samples: Iterable[Sample]) -> list[Sample]:
        """Return the samples with the model that Mustachio infers, with awkward values, and their results."""
        sources = list(samples)
        inferred = self._render(["mono", "mustachio.exe"], sources)
        models = [merged(*(answer["model"] for answer in answers.values())) for answers in inferred]
        filled = [replace(sample, model=awkward(model)) for sample, model in zip(sources, models, strict=True)]
        return self._with_results(["mono", "mustachio.exe"], filled)

    def handlebars(self, samples: Iterable[Sample]) -> list[Sample]:
        return self._with_results(["node", "handlebars.cjs"], list(samples))

    def react_email(self, repository: Repository, folder: str) -> list[Sample]:
        """Return the emails of resend/react-email as templates, whose texts are variables."""
        sources = self.folder / "emails"
        for name in (name for name in repository.files(folder) if name.endswith((".ts", ".tsx"))):
            path = sources / name.removeprefix(folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(repository.read(name))
        names = sorted(str(path) for path in sources.rglob("*.tsx") if not path.stem.endswith("-fonts"))
        answers = map(json.loads, self._run("node", "react_email.mjs", *names).splitlines())
        return [
            _react_sample(Path(name).relative_to(sources), answer) for name, answer in zip(names, answers, strict=True)
        ]

    def mjml(self, repository: Repository) -> list[Sample]:
        """Return the templates of mjmlio/email-templates as MJML compiles them, which have no variables."""
        names = [name for name in repository.files() if name.endswith(".mjml")]
        given = "".join(json.dumps({"source": repository.read(name)}) + "\n" for name in names)
        answers = map(json.loads, self._run("node", "mjml.cjs", given=given).splitlines())
        return [_mjml_sample(name, answer["html"]) for name, answer in zip(names, answers, strict=True)]

    def _with_results(self, command: list[str], samples: list[Sample]) -> list[Sample]:
        results = self._render(command, samples)
        return [
            replace(sample, expected={part: answer["text"] for part, answer in answers.items() if sample.parts[part]})
            for sample, answers in zip(samples, results, strict=True)
        ]

    def _render(self, command: list[str], samples: list[Sample]) -> list[dict[str, Any]]:
        """Return the answers of an engine for the parts of each sample."""
        questions = [
            json.dumps({"source": source, "model": sample.model, "html": part == "html"})
            for sample in samples
            for part, source in sample.parts.items()
        ]
        lines = iter(self._run(*command, given="\n".join(questions) + "\n").splitlines())
        return [{part: json.loads(next(lines)) for part in sample.parts} for sample in samples]

    def _run(self, *command: str, given: str = "") -> str:
        done = subprocess.run(command, cwd=self.folder, input=given.encode(), capture_output=True, check=False)
        if done.returncode:
            raise RuntimeError(f"{command[0]}: {done.stderr.decode()[-2000:]}")
        return done.stdout.decode()


def _mjml_sample(name: str, source: str) -> Sample:
    """Return HTML as a template that renders to itself: the value of each variable is its tag."""
    model = {found: f"{{{{{found}}}}}" for found in re.findall(r"\{\{(\w+)\}\}", source)}
    return Sample(name, "MJML", source, "", model, expected={"html": source})


def _react_sample(name: Path, answer: dict[str, Any]) -> Sample:
    values: dict[str, str] = awkward(answer["values"])
    first = next(iter(values), None)
    sample = Sample(
        str(name), f"About {{{{{{{first}}}}}}}" if first else "About", answer["html"], answer["text"], values
    )
    return replace(sample, expected={part: _substituted(source, values) for part, source in sample.parts.items()})


def _substituted(source: str, values: dict[str, str]) -> str:
    """Return a source with the values in the places of their variables, each place once."""
    pieces = source.split("{{{")
    filled = [values[name] + rest for name, _, rest in (piece.partition("}}}") for piece in pieces[1:])]
    return pieces[0] + "".join(filled)


def merged(*models: Any) -> Any:
    """Return one model of those that the parts of a template need; the one with more names wins."""
    found: dict[str, Any] = {}
    for model in models:
        for name, value in model.items():
            if name not in found or len(json.dumps(value)) > len(json.dumps(found[name])):
                found[name] = value
    return found
