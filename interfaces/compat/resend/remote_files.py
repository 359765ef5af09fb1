"""Files that an email of Resend's API names by URL: fetched once, when the email is accepted.

The rules for URLs and addresses are those of webhooks (docs/decisions/0191).
"""

import asyncio
from collections.abc import Sequence
from http import HTTPStatus

import aiohttp
from django.conf import settings

from core.api.errors import InvalidFields
from core.lib.network.address_guard import TargetRefused
from core.lib.network.guarded_http import GuardedSession, NoAddress, read_at_most
from core.lib.network.resolver import DnsError, Resolver
from emails.accept.rules.attachments import MAX_TOTAL_BYTES, too_large
from interfaces.compat.errors import invalid_field
from webhooks.sending.targets import refusal_detail, target_rules

# For all files of an email together: the request waits for them.
MAX_SECONDS = 10.0
HEADERS = {"user-agent": "Postrider-Attachments/1.2", "accept": "*/*", "accept-encoding": "identity"}
UNREACHABLE = (NoAddress, DnsError, aiohttp.ClientError, OSError, ValueError)


def fetch_files(urls: Sequence[str]) -> list[bytes]:
    """Return the content of the files, at most MAX_TOTAL_BYTES together.

    Raises InvalidFields if one cannot be fetched, and AttachmentsTooLarge.
    """
    try:
        return asyncio.run(_Fetch().all(urls))
    except TimeoutError as error:
        raise _refused(f"No complete answer within {MAX_SECONDS:.0f} seconds.") from error


class _Fetch:
    """Fetches the files of one email."""

    def __init__(self) -> None:
        self.bytes_left = MAX_TOTAL_BYTES

    async def all(self, urls: Sequence[str]) -> list[bytes]:
        session = GuardedSession(
            target_rules(),
            resolver=Resolver(settings.DNS_SERVERS),
            timeout=aiohttp.ClientTimeout(total=None),
            headers=HEADERS,
        )
        try:
            async with asyncio.timeout(MAX_SECONDS):
                return [await self._one(session, url) for url in urls]
        finally:
            await session.close()

    async def _one(self, session: GuardedSession, url: str) -> bytes:
        try:
            target = await session.check(url)
            async with session.client.get(target, allow_redirects=False) as response:
                if response.status != HTTPStatus.OK:
                    raise _refused(f"The answer has the status {response.status}; it must be 200, without redirects.")
                return await self._read(response.content)
        except TargetRefused as error:
            raise _refused(refusal_detail(error)) from error
        except TimeoutError:
            raise
        except UNREACHABLE as error:
            # No more than this: a URL must not be a way to explore a network.
            raise _refused("The URL cannot be reached.") from error

    async def _read(self, content: aiohttp.StreamReader) -> bytes:
        data = await read_at_most(content, self.bytes_left)
        if data is None:
            raise too_large()
        self.bytes_left -= len(data)
        return data


def _refused(reason: str) -> InvalidFields:
    return invalid_field("attachments", f"The file at `path` could not be fetched. {reason}")
