"""Mail servers that deliver messages over SMTP, each in its own network."""

import asyncio
import time
from collections.abc import Iterator
from itertools import count

from tools.benchmarks.inbound.messages import SENDER

# As many as a workspace may have.
SESSIONS = 10
# Fewer than an inbound server accepts in one session, and from one network in an hour.
MESSAGES_PER_SESSION = 100
networks = count(1)


def deliver(port: int, messages: Iterator[bytes], *, to: str) -> list[float]:
    """Deliver all messages in parallel sessions; return the seconds from each MAIL to the reply after its data."""
    return asyncio.run(_deliver(port, messages, to))


async def _deliver(port: int, messages: Iterator[bytes], to: str) -> list[float]:
    delays: list[float] = []
    await asyncio.gather(*(_send_all(port, messages, to, delays) for _ in range(SESSIONS)))
    return delays


async def _send_all(port: int, messages: Iterator[bytes], to: str, delays: list[float]) -> None:
    message = next(messages, None)
    while message is not None:
        network = next(networks)
        source = f"127.{network // 250 + 1}.{network % 250 + 1}.1"
        reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0))
        await _read_reply(reader, b"220")
        await _exchange(reader, writer, b"EHLO sender.example\r\n", b"250")
        sent = 0
        while message is not None and sent < MESSAGES_PER_SESSION:
            started = time.perf_counter()
            await _exchange(reader, writer, f"MAIL FROM:<{SENDER}>\r\n".encode(), b"250")
            await _exchange(reader, writer, f"RCPT TO:<{to}>\r\n".encode(), b"250")
            await _exchange(reader, writer, b"DATA\r\n", b"354")
            await _exchange(reader, writer, message + b".\r\n", b"250")
            delays.append(time.perf_counter() - started)
            sent += 1
            message = next(messages, None)
        writer.close()


async def _exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, data: bytes, code: bytes) -> None:
    writer.write(data)
    await _read_reply(reader, code)


async def _read_reply(reader: asyncio.StreamReader, code: bytes) -> None:
    while True:
        line = await reader.readline()
        assert line.startswith(code), line
        if line[3:4] == b" ":
            return
