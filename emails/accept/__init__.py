"""Acceptance turns a valid request into committed rows: `rules/`, drafts, idempotency keys, insertion."""
