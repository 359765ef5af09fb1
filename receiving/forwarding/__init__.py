"""Forwards send received email to addresses that have agreed (docs/decisions/0243)."""
