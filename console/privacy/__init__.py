"""Erasure of people by address, with a receipt (docs/decisions/0353)."""
