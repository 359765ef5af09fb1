"""Workspaces isolate the data of accounts: members, API keys and scopes, plans and quota, the audit log."""
