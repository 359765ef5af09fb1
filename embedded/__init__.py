"""Run Postrider on one machine, with a PostgreSQL and a Redis of its own.

Behind `bin/run`, `bin/test` and `bin/manage`. Standard library only, and no Django: it works before
anything is installed. Tests may start servers of their own:

    server = embedded.servers.postgres.start(directory, settings=embedded.servers.postgres.THROW_AWAY)
    server = embedded.servers.redis.start(directory)

Both return a `Server` with `url`, `port`, `pid`, `is_alive`, and `stop()`, and both end with the
process that started them, however that ends. `start_throw_away()` of either module needs no
directory: it makes one and stop() removes it.
"""
