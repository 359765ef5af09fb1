"""Checks of domains, periodic and on request: due rows, the queue work that queries DNS, the recorded results."""
