"""Formats of email: charsets, encoded words, header fields, MIME, address lists, and the SMTP server."""
