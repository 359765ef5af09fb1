"""Upkeep deletes and corrects rows of emails: retention, erasure, reconciliation of counters."""
