"""Alerts: rates and quota of a workspace that its owners watch (docs/decisions/0246)."""
