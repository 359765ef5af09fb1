"""Django's PostgreSQL backend with a health check that costs no round trip."""

import select

from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def is_usable(self) -> bool:
        """Tell whether a kept connection still works.

        A server that went away has closed the socket: then there is something to read where nothing was
        asked. Django's own check, a query, was an eighth of accepting an email; it is asked when in doubt.
        """
        if self.connection is None or self.errors_occurred:
            return bool(super().is_usable())
        readable, _, _ = select.select([self.connection.fileno()], [], [], 0)
        return bool(super().is_usable()) if readable else True
