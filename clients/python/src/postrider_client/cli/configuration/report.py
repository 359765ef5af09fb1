"""Shows a plan and its execution: as text on a terminal, otherwise as one JSON object."""

import difflib
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Callable, Optional

import click
from rich.text import Text

from postrider_client.cli.configuration.applying import NewSecret
from postrider_client.cli.configuration.faults import InvalidFile
from postrider_client.cli.configuration.planning import ARCHIVE, CREATE, DELETE, UPDATE, FieldChange, Plan, Step
from postrider_client.cli.output import Output, note, plain_text, write_json

MARKS = {CREATE: ("+", "green"), UPDATE: ("~", "yellow"), DELETE: ("-", "red"), ARCHIVE: ("-", "red")}
COUNTS = {CREATE: "to create", UPDATE: "to change", DELETE: "to delete", ARCHIVE: "to archive"}
DIFF_STYLES = {"+": "green", "-": "red", "@": "cyan"}
MAX_DIFF_LINES = 40
MAX_VALUE_LENGTH = 200
PENDING, FAILED, DONE = "pending", "failed", "done"


@dataclass
class Report:
    """The report of a plan and its application.

    hide: removes secrets of the file from a value.
    statuses: the statuses of the steps, by position.
    """

    output: Output
    hide: Callable[[Any], Any]
    plan: Plan
    statuses: list[str] = field(default_factory=list)
    secrets: list[NewSecret] = field(default_factory=list)

    def show_plan(self) -> None:
        """Print the plan on a terminal."""
        if not self.output.is_table:
            return
        for workspace, steps in itertools.groupby(self.plan.steps, key=lambda step: step.target.label):
            self._print(workspace, "bold")
            for step in steps:
                self._show_step(step)
        self._print(_summary(self.plan), "bold")
        if self.plan.unmanaged:
            self._show_kept("Not in the file", [step for step in self.plan.unmanaged if not step.is_duplicate])
            self._show_kept("Twice in the service", [step for step in self.plan.unmanaged if step.is_duplicate])

    def show_progress(self, step: Step) -> None:
        if self.output.is_table:
            words = {CREATE: "created", UPDATE: "changed", DELETE: "deleted", ARCHIVE: "archived"}
            self._print(f"✓ {step.kind_name} {step.label} {words[step.action]}", "green")

    def show_secret(self, secret: NewSecret) -> None:
        """Print a secret at once on a terminal, and with the result otherwise."""
        self.secrets.append(secret)
        if self.output.is_table:
            self._print(f"Store the secret of the new {secret.kind} {secret.name}, which is not shown again:")
            self.output.console.print(Text(f"  {secret.secret}", "bold"), soft_wrap=True)

    def show_result(self) -> None:
        """Print the steps with their statuses as JSON, unless the output is a terminal."""
        if self.output.is_table:
            return
        statuses = self.statuses or ["planned"] * len(self.plan.steps)
        steps = [{**step.raw, "status": status} for step, status in zip(self.plan.steps, statuses)]
        result = {"changes": steps, "unmanaged": [step.raw for step in self.plan.unmanaged]}
        secrets = [{**self.hide(one.raw), "secret": one.secret} for one in self.secrets]
        write_json({**self.hide(result), "secrets": secrets})

    def show_failure(self) -> None:
        """Name the step that failed, and the progress until then."""
        step = self.plan.steps[self.statuses.index(FAILED)]
        note(self.hide(f"Not completed: {step.action} {step.kind_name} {step.label}"))
        done = self.statuses.count(DONE)
        note(f"{done} of {len(self.statuses)} changes were made. Run the command again to make the others.")

    def _show_step(self, step: Step) -> None:
        mark, style = MARKS[step.action]
        self._print(f"  {mark} {step.kind_name} {step.label}", style)
        for change in step.changes:
            # Secrets are found before the values are cut, escaped or split into lines.
            for line in _change_lines(FieldChange(change.name, self.hide(change.old), self.hide(change.new))):
                self._print(f"      {line}", _line_style(change, line))

    def _show_kept(self, reason: str, steps: Sequence[Step]) -> None:
        if steps:
            names = ", ".join(f"{step.kind_name} {step.label}" for step in steps)
            self._print(f"{reason}, and deleted or archived only with --prune: {names}.", "dim")

    def _print(self, text: str, style: str = "") -> None:
        self.output.console.print(Text(plain_text(self.hide(text)), style))


def show_faults(output: Output, error: InvalidFile) -> None:
    """Print all errors of a file."""
    for fault in error.faults:
        note(fault.text(error.file))
    if not output.is_table:
        write_json({"errors": [fault.raw(error.file) for fault in error.faults]})


def _summary(plan: Plan) -> str:
    counts = {action: sum(step.action == action for step in plan.steps) for action in COUNTS}
    parts = [f"{count} {COUNTS[action]}" for action, count in counts.items() if count]
    return f"Plan: {', '.join(parts)}." if parts else "No changes: the service matches the file."


def _change_lines(change: FieldChange) -> Iterator[str]:
    if change.old is None and _is_long(change.new):
        yield f"{change.name}: {len(change.new.splitlines()):,} lines"
    elif change.old is None:
        yield f"{change.name}: {_shown(change.new)}"
    elif _is_long(change.old) or _is_long(change.new):
        yield f"{change.name}:"
        yield from _diff(change.old, change.new)
    else:
        yield f"{change.name}: {_shown(change.old)} → {_shown(change.new)}"


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and ("\n" in value or len(value) > MAX_VALUE_LENGTH)


def _diff(old: Optional[str], new: Optional[str]) -> Iterator[str]:
    lines = difflib.unified_diff((old or "").splitlines(), (new or "").splitlines(), lineterm="", n=1)
    shown = [line[:MAX_VALUE_LENGTH] for line in itertools.islice(lines, 2, MAX_DIFF_LINES + 3)]
    yield from shown[:MAX_DIFF_LINES]
    if len(shown) > MAX_DIFF_LINES:
        yield "…"


def _shown(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= MAX_VALUE_LENGTH else f"{text[:MAX_VALUE_LENGTH]}… ({len(text):,} characters)"


def _line_style(change: FieldChange, line: str) -> str:
    is_diff = not line.startswith(change.name)
    return DIFF_STYLES.get(line[:1], "dim") if is_diff else "dim"


def confirm_plan() -> bool:
    return click.confirm("Make these changes?", err=True)
