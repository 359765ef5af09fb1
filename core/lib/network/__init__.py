"""Connections to and from others: the guard that refuses private addresses, names, and HTTP requests."""
