"""The catch-all inbox of a development installation, in place of mail hosts."""
