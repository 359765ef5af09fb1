"""Erasure of people by their addresses: the steps that apps share, and those of the audit log."""
