"""TLS reports to recipient domains: their content, the message or request with them, and the daily run (RFC 8460)."""
