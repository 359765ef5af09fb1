"""Recipient rules: who may get email of a workspace or an API key, and what happens to others."""
