"""Ring for the workers. A bell that cannot ring never fails or delays the request that rings it.

It carries nothing: a worker that hears it looks at the database. Without Redis the workers' own timer
finds the work within seconds.
"""

import redis
from celery import current_app
from django.conf import settings
from kombu.exceptions import OperationalError

from network.redis_client import ask_redis

COALESCE_SECONDS = 5


def ring(kind: str) -> None:
    """Ask some worker to drain `emails` or `webhooks`; many rings before it starts become one."""
    ask_redis(settings.REDIS_URL, lambda client: _ring(client, kind))


def answer(kind: str) -> None:
    """Say that a drain has begun: what comes from now on rings anew."""
    ask_redis(settings.REDIS_URL, lambda client: client.delete(_key(kind)))


def _ring(client: redis.Redis, kind: str) -> None:
    # Deleted when a drain starts; its expiry only covers a task that Redis lost.
    if not client.set(_key(kind), "1", nx=True, ex=COALESCE_SECONDS):
        return
    try:
        current_app.send_task(f"{kind}.tasks.drain", retry=False, expires=COALESCE_SECONDS)
    except OperationalError as error:
        raise redis.ConnectionError(str(error)) from error


def _key(kind: str) -> str:
    return f"postrider:bell:{kind}"
