"""Provisioning manages workspaces from code, with management keys: `/v1/admin` (docs/decisions/0144)."""
