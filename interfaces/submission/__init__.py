"""The SMTP server for programs accepts their messages as emails (RFC 6409)."""
