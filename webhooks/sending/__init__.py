"""Sending of webhook deliveries: claim, sign, post, record, try again."""
