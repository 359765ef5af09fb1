"""Alerts notify owners that a rate or the quota of a workspace reached a threshold (docs/decisions/0246)."""
