"""Reputation finds workspaces whose bounces and complaints would harm the others (docs/decisions/0065)."""
