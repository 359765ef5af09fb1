"""`postrider completion`."""

import click
from click.shell_completion import get_completion_class

from postrider_client.cli.commands import PostriderCommand

VARIABLE = "_POSTRIDER_COMPLETE"


@click.command(cls=PostriderCommand)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script of a shell.

    For bash, add `eval "$(postrider completion bash)"` to ~/.bashrc.
    """
    completer = get_completion_class(shell)
    assert completer
    click.echo(completer(context.find_root().command, {}, "postrider", VARIABLE).source())
