"""`postrider mcp`."""

import importlib

import click

from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.client import Postrider


@click.command(cls=PostriderCommand)
@click.option("--allow-send", is_flag=True, help="Add the tool that sends emails, which a person approves first.")
@click.option(
    "--without-approval", is_flag=True, help="With --allow-send, also with a key whose emails leave without approval."
)
@pass_invocation
def mcp(invocation: Invocation, /, *, allow_send: bool, without_approval: bool) -> None:
    """Run an MCP server on standard input and output.

    Assistants can search emails, explain bounces and list the missing DNS records of domains. They can send only with
    --allow-send; without it nothing in the workspace is changed. The key of an assistant that sends needs approval: its
    emails wait until a person approves them.
    """
    try:
        # The extra mcp is optional, and slow to import.
        tools = importlib.import_module("postrider_client.cli.mcp_server.tools")
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise click.ClickException("The MCP server needs mcp. Run: pip install 'mcp>=2.3,<3'") from error
    with invocation.client() as client:
        if allow_send and not without_approval:
            _refuse_unapproved(client)
        tools.make_server(client, allow_send=allow_send).run()


def _refuse_unapproved(client: Postrider) -> None:
    """Refuse a key whose emails leave without the approval of a person; those of a test key leave nowhere."""
    key = client.me().key
    if key.approval != "required" and not key.test:
        raise click.ClickException(
            "Emails of this key leave without approval. Create a key with `approval: required` for assistants, or pass "
            "--without-approval."
        )
