"""Suppressions keep email from addresses that must not get it, from a workspace or from one of its streams."""
