"""Received email is stored, read, matched to a sent email and published to its workspace (docs/decisions/0225)."""
