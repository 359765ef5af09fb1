"""Recipient rules: the recipients of a workspace or an API key, and the treatment of others."""
