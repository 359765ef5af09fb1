"""The global options of one run of the program, and the client and output that they select."""

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Optional

import click

from postrider_client.cli.output import Output
from postrider_client.cli.profiles import DEFAULT_PROFILE, Profile, normalized_url, read_profile
from postrider_client.client import Postrider

LOGIN_HINT = "Run `postrider login`, or set POSTRIDER_URL and POSTRIDER_API_KEY."


@dataclass(frozen=True)
class Invocation:
    """The global options; a command receives it with `@pass_invocation`."""

    is_json: bool = False
    profile: str = DEFAULT_PROFILE
    url: Optional[str] = None
    api_key: Optional[str] = None

    @cached_property
    def output(self) -> Output:
        return Output(is_json=self.is_json)

    @cached_property
    def connection(self) -> Profile:
        """Return the URL and key: from the options, the environment or the profile, in this order.

        The key of a profile is sent only to the profile's URL. Raises click.ClickException if one is missing.
        """
        stored = read_profile(self.profile)
        url = self.url or os.environ.get("POSTRIDER_URL") or (stored.url if stored else None)
        if not url:
            raise click.ClickException(f"The URL of the service is missing. {LOGIN_HINT}")
        is_stored_url = stored is not None and normalized_url(url) == normalized_url(stored.url)
        stored_key = stored.api_key if stored and is_stored_url else None
        api_key = self.api_key or os.environ.get("POSTRIDER_API_KEY") or stored_key
        if not api_key:
            raise click.ClickException(f"No API key for {url}. {LOGIN_HINT}")
        return Profile(url, api_key)

    def client(self, *, timeout_seconds: float = 60, max_retries: int = 3) -> Postrider:
        """Return a client for the selected service."""
        connection = self.connection
        return Postrider(
            connection.api_key, base_url=connection.url, timeout_seconds=timeout_seconds, max_retries=max_retries
        )
