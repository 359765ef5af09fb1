"""The network loop of a process closes at the end what it has kept."""

import asyncio

from core.lib.worker import event_loop


def test_kept_connections_are_closed_in_the_loop(monkeypatch):
    monkeypatch.setattr(event_loop, "_closed_at_stop", [])
    closed = []

    async def close():
        closed.append(asyncio.get_running_loop())

    event_loop.close_at_stop(close)
    event_loop.close_network()
    assert closed == [event_loop.network_loop()]
