"""Bounces page: the most frequent reasons and receiving hosts, with advice (docs/decisions/0248)."""
