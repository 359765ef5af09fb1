"""Reputation: bounce and complaint rates of workspaces and their thresholds (docs/decisions/0065)."""
