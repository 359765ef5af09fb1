"""Options and facts of commands that follow from the API: the fields of a request, the members of an answer."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from postrider_client.cli.fields import Input
from postrider_client.cli.inputs import INPUTS
from postrider_client.wire import argument_name

F = TypeVar("F", bound=Callable[..., Any])


def range_options(command: F) -> F:
    """Add the options of a range that has 30 days by default, as `from_` and `to`."""
    until = click.option("--until", "to", metavar="DATE", help="Until this date or time.")
    since = click.option("--since", "from_", metavar="DATE", help="Since this date or time; 30 days ago by default.")
    return since(until(command))


def field_options(schema: str, *, without: tuple[str, ...] = (), **changed: Mapping[str, Any]) -> Callable[[F], F]:
    """Return a decorator that adds an option for each field of a request, by the name of its schema.

    without: fields that are arguments of the command.
    changed: by field, the names of its option as `names`, or other settings of click.
    """
    options = [_option(one, changed.get(one.name, {})) for one in INPUTS[schema] if one.name not in without]

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def _option(field: Input, changed: Mapping[str, Any]) -> Callable[[F], F]:
    settings: dict[str, Any] = {"help": field.text, **_type_of(field), **changed}
    argument = argument_name(field.name)
    flag = argument.replace("_", "-")
    default_names = (f"--{flag}/--no-{flag}",) if field.kind == "boolean" else (f"--{flag}",)
    names = settings.pop("names", default_names)
    return click.option(*names, argument, **settings)


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


def facts_of(answer: Any, *, without: tuple[str, ...] = (), **titles: str) -> dict[str, Any]:
    """Return the members of an answer by title, but for some.

    titles: by member, another title than its name.
    """
    members = [one.name for one in dataclasses.fields(answer) if one.name not in ("raw", *without)]
    return {titles.get(name) or _title(name): getattr(answer, name) for name in members}


def _title(name: str) -> str:
    return name.removesuffix("_at").rstrip("_").replace("_", " ").capitalize()
