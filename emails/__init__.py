"""Emails are accepted, sent to each recipient, and followed until every recipient has exactly one outcome."""
