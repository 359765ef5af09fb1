"""Requests with an API key: authentication, scopes, rate limits, and the views that start from its workspace."""
