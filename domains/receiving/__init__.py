"""Receiving domains bring the email of a domain to its workspace (docs/decisions/0226)."""
