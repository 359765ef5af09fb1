"""A policy host of MTA-STS on loopback, with TLS.

async with PolicyHost(context) as host: ... host.port, host.requests; `body`, `status` and others may be changed.
"""

import asyncio
import ssl
from typing import Self

from aiohttp import web

POLICY = "version: STSv1\nmode: {mode}\nmx: {mx}\nmax_age: {max_age}\n"


def policy_text(mode: str = "enforce", *, mx: str = "mx0.example.com", max_age: int = 604_800) -> bytes:
    return POLICY.format(mode=mode, mx=mx, max_age=max_age).encode()


class PolicyHost:
    def __init__(self, tls: ssl.SSLContext, body: bytes = b"") -> None:
        self.tls = tls
        self.body = body or policy_text()
        self.status = 200
        self.content_type = "text/plain"
        self.seconds = 0.0
        self.location = ""
        self.requests: list[str] = []
        self.port = 0

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_get("/{path:.*}", self._answer)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0, ssl_context=self.tls)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append(f"{request.host.partition(':')[0]}{request.path}")
        await asyncio.sleep(self.seconds)
        headers = {"Content-Type": self.content_type, **({"Location": self.location} if self.location else {})}
        return web.Response(body=self.body, status=self.status, headers=headers)
