"""`postrider login`."""

import os
import sys

import click

from postrider_client.cli.commands import PostriderCommand, pass_invocation
from postrider_client.cli.invocation import Invocation
from postrider_client.cli.output import plain_text
from postrider_client.cli.profiles import Profile, store_profile
from postrider_client.client import Postrider


@click.command(cls=PostriderCommand)
@pass_invocation
def login(invocation: Invocation) -> None:
    """Store the URL and API key of a service.

    Asks for the values that the options and the environment do not set. The key is checked and stored in
    ~/.config/postrider/profiles.json, which only you can read. In scripts, pass the key on standard input:
    `postrider login --url https://mail.example.com < key.txt`.
    """
    url = invocation.url or os.environ.get("POSTRIDER_URL") or click.prompt("URL of the service", err=True)
    api_key = invocation.api_key or os.environ.get("POSTRIDER_API_KEY") or _ask_key()
    profile = Profile(url.strip().rstrip("/"), api_key.strip())
    with Postrider(profile.api_key, base_url=profile.url) as client:
        me = client.me()
    path = store_profile(invocation.profile, profile)
    message = f"{me.workspace.name} ({me.key.scope}) is stored as profile {invocation.profile} in {path}."
    invocation.output.show_result(plain_text(message), raw={**me.raw, "profile": invocation.profile, "path": str(path)})


def _ask_key() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline()
    return str(click.prompt("API key", hide_input=True, err=True))
