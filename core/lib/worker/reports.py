"""Reports of worker processes in Redis, for display only: each expires after 35 seconds. Without Redis, none."""

import os
import socket

import redis

from core.lib.redis_client import ask_redis

EXPIRES_SECONDS = 35


def send_report(url: str, text: str, *, prefix: str) -> None:
    """Store the report of this process in place of its last one. prefix: the prefix of the names of such reports."""
    name = f"{prefix}{socket.gethostname()}:{os.getpid()}"
    ask_redis(url, lambda client: client.set(name, text, ex=EXPIRES_SECONDS))


def read_reports(url: str, *, prefix: str) -> list[bytes | str]:
    """Return the reports of the last 35 seconds, in any order."""

    def read(client: redis.Redis) -> list[bytes | str]:
        names = list(client.scan_iter(match=f"{prefix}*", count=1000))
        return [text for text in client.mget(names) if text] if names else []

    return ask_redis(url, read) or []
