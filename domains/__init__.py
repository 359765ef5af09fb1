"""Sending domains prove by DNS records that a workspace may send, receive and track as a name; their DKIM keys sign."""
