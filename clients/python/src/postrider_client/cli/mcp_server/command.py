"""`postrider mcp`."""

import importlib

import click

from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.invocation import Invocation


@click.command(cls=PostriderCommand)
@click.option("--allow-send", is_flag=True, help="Add the tool that sends emails.")
@pass_invocation
def mcp(invocation: Invocation, *, allow_send: bool) -> None:
    """Run an MCP server on standard input and output.

    Assistants can search emails, explain bounces and list the missing DNS records of domains. They can send only with
    --allow-send; without it nothing in the workspace is changed.
    """
    try:
        # The extra mcp is optional, and slow to import.
        tools = importlib.import_module("postrider_client.cli.mcp_server.tools")
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise click.ClickException("The MCP server needs mcp. Run: pip install 'mcp>=2.3,<3'") from error
    with invocation.client() as client:
        tools.make_server(client, allow_send=allow_send).run()
