"""Connections to and from others: addresses, names and HTTP requests."""
