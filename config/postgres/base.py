"""Django's PostgreSQL backend with a health check that costs no round trip."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        """Return whether a persistent connection still works.

        A server that stopped has closed the socket, which makes it readable although no query is running. Django's own
        check, a query, took an eighth of the time to accept an email; it runs only in doubt.
        """
        if self.connection is None or self.errors_occurred:
            return bool(super().is_usable())
        readable, _, _ = select.select([self.connection.fileno()], [], [], 0)
        return bool(super().is_usable()) if readable else True
