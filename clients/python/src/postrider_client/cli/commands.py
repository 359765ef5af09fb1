"""Commands and groups of commands, which accept the global options before and after their name."""

import dataclasses
from typing import Any

import click

from postrider_client.cli.invocation import Invocation


def _set_option(context: click.Context, option: click.Parameter, value: Any) -> None:
    """Apply a global option to this command and those below it."""
    if value is not None:
        context.obj = dataclasses.replace(context.obj, **{str(option.name): value})


def _global_option(*names: str, **settings: Any) -> click.Option:
    return click.Option(names, expose_value=False, callback=_set_option, default=None, **settings)


GLOBAL_OPTIONS = (
    _global_option("--json", "is_json", flag_value=True, help="Print JSON on a terminal, too."),
    _global_option("--profile", metavar="NAME", help="Use the URL and key stored by `postrider login --profile NAME`."),
    _global_option("--url", metavar="URL", help="The address of the service; also POSTRIDER_URL."),
    _global_option(
        "--api-key", metavar="KEY", help="The API key; also POSTRIDER_API_KEY, which other users cannot see."
    ),
)


class _AcceptsGlobalOptions(click.Command):
    """Adds the global options to the parameters of a command, in a separate section of the help."""

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        return [*super().get_params(ctx), *GLOBAL_OPTIONS]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_section("Options", super().get_params(ctx), ctx, formatter)
        if isinstance(self, click.Group):
            self.format_commands(ctx, formatter)
        _write_section("Global options", list(GLOBAL_OPTIONS), ctx, formatter)


def _write_section(
    title: str, parameters: list[click.Parameter], context: click.Context, formatter: click.HelpFormatter
) -> None:
    records = [record for one in parameters if (record := one.get_help_record(context))]
    if records:
        with formatter.section(title):
            formatter.write_dl(records)


class PostriderCommand(_AcceptsGlobalOptions):
    """The class of every command: `@click.command(cls=PostriderCommand)`."""


class PostriderGroup(_AcceptsGlobalOptions, click.Group):
    """A group of commands. Those added with its decorator are of the same classes."""

    command_class = PostriderCommand
    group_class = type


pass_invocation = click.make_pass_decorator(Invocation)
