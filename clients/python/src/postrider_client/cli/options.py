"""Options and facts of commands that follow from the API: the fields of a request, the members of an answer."""

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Input:
    """A field of a request, as the API describes it.

    kind: its JSON type.
    least, most: limits of a number.
    """

    name: str
    kind: str
    text: str
    choices: tuple[str, ...] = ()
    least: Optional[float] = None
    most: Optional[float] = None


def field_options(schema: str, *, without: tuple[str, ...] = (), **changed: Mapping[str, Any]) -> Callable[[F], F]:
    """Return a decorator that adds an option for each field of a request, by the name of its schema.

    without: fields that are arguments of the command.
    changed: by field, the names of its option as `names`, or other settings of click.
    """
    from postrider_client.cli.inputs import INPUTS  # noqa: PLC0415 - it imports Input

    options = [_option(one, changed.get(one.name, {})) for one in INPUTS[schema] if one.name not in without]

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _option(field: Input, changed: Mapping[str, Any]) -> Callable[[F], F]:
    settings: dict[str, Any] = {"help": field.text, **_type_of(field), **changed}
    flag = "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in field.name)
    default_names = (f"--{flag}/--no-{flag}",) if field.kind == "boolean" else (f"--{flag}",)
    names = settings.pop("names", default_names)
    return click.option(*names, flag.replace("-", "_"), **settings)


def _type_of(field: Input) -> dict[str, Any]:
    """Return the settings of click for the type of a field."""
    if field.kind == "boolean":
        return {"default": None}
    if field.choices:
        return {"type": click.Choice(field.choices)}
    if field.kind == "integer":
        least, most = (None if one is None else int(one) for one in (field.least, field.most))
        return {"type": click.IntRange(least, most)}
    if field.kind == "number":
        return {"type": float, "metavar": "NUMBER"}
    return {"metavar": "TEXT", "multiple": field.kind == "array"}


def given(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given."""
    values = {name: value for name, value in options.items() if value not in (None, ())}
    return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}


def changes_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that were given. Raises click.UsageError without any."""
    changes = given(options)
    if not changes:
        raise click.UsageError(f"Pass at least one property, such as --{next(iter(options)).replace('_', '-')}.")
    return changes


def facts_of(answer: Any, **changed: Any) -> dict[str, Any]:
    """Return the members of an answer by title.

    changed: by member, another value for it, or None to leave it out.
    """
    members = [one.name for one in dataclasses.fields(answer) if one.name != "raw"]
    values = {name: changed[name] if name in changed else getattr(answer, name) for name in members}
    return {_title(name): value for name, value in values.items() if not (name in changed and value is None)}


def _title(name: str) -> str:
    return name.removesuffix("_at").rstrip("_").replace("_", " ").capitalize()
