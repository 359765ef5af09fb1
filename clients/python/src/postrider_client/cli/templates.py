"""`postrider templates`: pull writes the templates of the workspace to files, push writes files to the workspace."""

import difflib
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Optional

import click
from rich.text import Text

from postrider_client.answers import Template
from postrider_client.cli.commands import PostriderGroup, pass_invocation
from postrider_client.cli.error_messages import FAILED
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import note, plain_text
from postrider_client.cli.profiles import normalized_url
from postrider_client.cli.template_check import find_problems, needed_by
from postrider_client.cli.template_files import PullState, TemplateContent, TemplateDirectory, content_of, key_of
from postrider_client.client import Postrider

DIRECTORY = click.argument(
    "directory", type=click.Path(file_okay=False, path_type=Path), default="templates", required=False
)
DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}


@dataclass(frozen=True)
class TemplatePair:
    """A template in the files and on the service. base: its fingerprint at the last pull or push."""

    key: str
    template_id: Optional[str]
    local: Optional[TemplateContent]
    remote: Optional[TemplateContent]
    base: Optional[str]

    @property
    def is_equal(self) -> bool:
        return self.local == self.remote

    @property
    def is_changed_here(self) -> bool:
        return self.local is not None and self.local.fingerprint != self.base

    @property
    def is_changed_remotely(self) -> bool:
        return self.remote is not None and self.remote.fingerprint != self.base


@click.group(cls=PostriderGroup)
def templates() -> None:
    """Keep templates in files, such as those of a repository."""


@templates.command("pull")
@DIRECTORY
@click.option("--force", is_flag=True, help="Overwrite files with local changes.")
@pass_invocation
def pull_templates(invocation: Invocation, *, directory: Path, force: bool) -> None:
    """Write all templates to files in a directory (default: templates).

    Files with changes since the last pull or push are kept and listed; the exit code is then 1.
    """
    state = _state_of(invocation, directory)
    with invocation.client() as client:
        pairs = [pair for pair in _pairs(client, directory, state) if pair.remote]
    files = TemplateDirectory(directory)
    changed = [pair for pair in pairs if pair.is_changed_here or files.has_other_text(pair.key)]
    kept = [] if force else [pair for pair in changed if not pair.is_equal]
    written = [pair for pair in pairs if not pair.is_equal and pair not in kept]
    for pair in pairs:
        if pair.remote and pair not in kept:
            if pair in written:
                files.write(pair.key, pair.remote)
            state.record(pair.key, pair.remote)
    _show_keys(invocation, "pulled", written, left="kept", others=kept)
    _fail_if(kept, "has local changes, which --force overwrites.")


@templates.command("push")
@DIRECTORY
@click.option("--dry-run", is_flag=True, help="Only show the changes.")
@click.option("--yes", is_flag=True, help="Do not ask before the changes.")
@click.option("--force", is_flag=True, help="Overwrite templates that were changed since the last pull.")
@pass_invocation
def push_templates(invocation: Invocation, *, directory: Path, dry_run: bool, yes: bool, force: bool) -> None:
    """Create and update templates from the files in a directory (default: templates).

    Shows the changes and asks first. Templates that were changed on the service since the last pull are skipped and
    listed; the exit code is then 1. No template is deleted.
    """
    if not directory.is_dir():
        raise click.ClickException(f"There is no directory {directory}.")
    state = _state_of(invocation, directory)
    with invocation.client() as client:
        pairs = [pair for pair in _pairs(client, directory, state) if pair.local and not pair.is_equal]
        skipped = [] if force else [pair for pair in pairs if pair.is_changed_remotely]
        changed = in_order_of_use([pair for pair in pairs if pair not in skipped])
        for pair in changed:
            _show_changes(invocation, pair)
        if changed and not dry_run and not yes:
            _confirm(len(changed))
        for pair in changed if not dry_run else ():
            _push(client, pair, state)
    _show_keys(invocation, "changed" if dry_run else "pushed", changed, left="skipped", others=skipped)
    _fail_if(skipped, "was changed on the service since the last pull. Pull it first, or use --force.")


@templates.command("check")
@DIRECTORY
@click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    help="The lowest level of a problem with which the exit code is 1 (default: error).",
)
@pass_invocation
def check_templates(invocation: Invocation, *, directory: Path, fail_on: str) -> None:
    """Check the files in a directory (default: templates) without the service.

    Reports unknown layouts and partials, missing translations, variables that differ between languages, links that are
    not https, images without a text, and templates above 100 kB.
    """
    problems = list(find_problems(TemplateDirectory(directory)))
    lines = [f"{one.file}:{one.line}: {one.level}: {one.message}" for one in problems]
    invocation.output.show_result("\n".join(lines) or "No problems.", raw={"problems": [vars(one) for one in problems]})
    if any(fail_on in (one.level, "warning") for one in problems):
        sys.exit(FAILED)


def in_order_of_use(pairs: list[TemplatePair]) -> list[TemplatePair]:
    """Return templates in the order in which they can be created: partials and layouts come before their users."""
    waiting, ordered = list(pairs), list[TemplatePair]()
    while waiting:
        keys = {pair.key for pair in waiting}
        ready = [pair for pair in waiting if not pair.local or not needed_by(pair.local) & (keys - {pair.key})]
        ordered += ready or waiting
        waiting = [pair for pair in waiting if pair not in (ready or waiting)]
    return ordered


def _state_of(invocation: Invocation, directory: Path) -> PullState:
    return PullState(directory, url=normalized_url(invocation.connection.url))


def _pairs(client: Postrider, directory: Path, state: PullState) -> list[TemplatePair]:
    local = TemplateDirectory(directory).read_all()
    items = list(client.templates.list(limit=100))
    layouts = {item.id: key_of(item) for item in items if item.kind == "layout"}
    remote = {key_of(item): client.templates.get(item.id) for item in items}
    return [_pair(key, remote.get(key), local.get(key), layouts, state) for key in sorted({*remote, *local})]


def _pair(
    key: str,
    template: Optional[Template],
    local: Optional[TemplateContent],
    layouts: Mapping[str, str],
    state: PullState,
) -> TemplatePair:
    # The name of the file is the alias, unless it is the id of a template without one.
    if local and not local.alias and not (template and template.alias is None):
        local = replace(local, alias=key)
    return TemplatePair(
        key,
        template_id=template.id if template else None,
        local=local,
        remote=content_of(template, layouts) if template else None,
        base=state.fingerprint(key),
    )


def _push(client: Postrider, pair: TemplatePair, state: PullState) -> None:
    assert pair.local
    fields = pair.local.request
    if pair.template_id:
        client.templates.update(pair.template_id, **fields)
    else:
        client.templates.create(**fields, kind=pair.local.kind)
    state.record(pair.key, pair.local)


def _confirm(count: int) -> None:
    if not sys.stdin.isatty():
        raise click.UsageError("Pass --yes to change templates without a question.")
    click.confirm(f"Change {count} templates?", abort=True, err=True)


def _show_changes(invocation: Invocation, pair: TemplatePair) -> None:
    """Print the difference on a terminal, and on standard error otherwise."""
    for line in _difference(pair):
        if invocation.output.is_table:
            invocation.output.console.print(Text(plain_text(line), DIFF_STYLES.get(line[:1], "")))
        else:
            note(line)


def _difference(pair: TemplatePair) -> Iterator[str]:
    return difflib.unified_diff(
        _lines(pair.remote), _lines(pair.local), f"{pair.key} (service)", f"{pair.key} (file)", lineterm=""
    )


def _lines(content: Optional[TemplateContent]) -> list[str]:
    if content is None:
        return []
    return [line for name, value in asdict(content).items() for line in f"{name}: {value}".splitlines()]


def _show_keys(
    invocation: Invocation, title: str, pairs: list[TemplatePair], *, left: str, others: list[TemplatePair]
) -> None:
    keys, other_keys = [pair.key for pair in pairs], [pair.key for pair in others]
    message = f"{len(keys)} {title}: {', '.join(keys)}" if keys else f"No template {title}."
    invocation.output.show_result(message, raw={title: keys, left: other_keys})


def _fail_if(pairs: list[TemplatePair], problem: str) -> None:
    for pair in pairs:
        note(f"{pair.key} {problem}")
    if pairs:
        sys.exit(FAILED)
