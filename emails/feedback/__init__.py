"""Feedback records events after the sending: opens, clicks, bounces, complaints, unsubscribes."""
