"""Launcher that runs Postrider on one machine with an embedded PostgreSQL and Redis.

It implements `bin/run`, `bin/test` and `bin/manage`. It uses only the standard library, so it works before
anything is installed. Tests may start additional servers:

    server = tools.embedded.servers.postgres.start(directory, settings=tools.embedded.servers.postgres.THROW_AWAY)
    server = tools.embedded.servers.redis.start(directory)

Both return a `ManagedServer` with `url`, `port`, `pid`, `is_alive` and `stop()`. A server always exits with the
process that started it, even if that process is killed. `start_throw_away()` of either module creates a
temporary directory, which `stop()` removes.
"""
