"""The root command `postrider` and its subcommands."""

from collections.abc import Sequence

import click

from postrider_client.cli.alerts import alerts
from postrider_client.cli.approvals import approvals
from postrider_client.cli.bounces import bounces
from postrider_client.cli.commands import PostriderGroup
from postrider_client.cli.completion import completion
from postrider_client.cli.configuration.command import apply
from postrider_client.cli.domains import domains
from postrider_client.cli.emails import emails
from postrider_client.cli.error_messages import INTERRUPTED, OUTPUT_CLOSED, USAGE, error_message, exit_code
from postrider_client.cli.inbound import inbound
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.latency import latency
from postrider_client.cli.login import login
from postrider_client.cli.mcp_server.command import mcp
from postrider_client.cli.output import note
from postrider_client.cli.privacy import erase, export_subject
from postrider_client.cli.send import send
from postrider_client.cli.streams import streams
from postrider_client.cli.suppressions import suppressions
from postrider_client.cli.tail import tail
from postrider_client.cli.templates import templates
from postrider_client.cli.webhooks import webhooks
from postrider_client.version import __version__

# In the order of the help.
COMMANDS = (
    login, send, emails, approvals, bounces, latency, tail, inbound, templates, domains, streams, suppressions, alerts,
    webhooks, erase, export_subject, apply, mcp, completion,
)  # fmt: skip


@click.group(cls=PostriderGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="postrider")
def postrider() -> None:
    """Send, follow and receive transactional email with Postrider.

    Commands print tables on a terminal and JSON otherwise. Exit codes: 1 failed, 2 usage, 3 key or scope, 4 not
    found, 5 rejected, 6 rate limit or quota, 7 service not reachable, 8 a dry run found changes.
    """


for command in COMMANDS:
    postrider.add_command(command)


def run(arguments: Sequence[str]) -> int:
    """Run a command and return the exit code. An error is one line on standard error."""
    try:
        result = postrider.main(list(arguments), prog_name="postrider", standalone_mode=False, obj=Invocation())
    except click.exceptions.NoArgsIsHelpError as usage:
        click.echo(usage.format_message(), err=True)
        return USAGE
    except (click.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except BrokenPipeError:
        return OUTPUT_CLOSED
    except Exception as error:
        message = error_message(error)
        if message is None:
            raise
        click.secho("error: ", fg="red", bold=True, nl=False, err=True)
        note(message)
        return exit_code(error)
    return result if isinstance(result, int) else 0
