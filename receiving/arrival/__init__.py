"""Arrival decides at RCPT who receives a message, and stores it before the 250."""
