"""Counters answer sums of any size in constant time: hours, days and their deltas (docs/decisions/0007, 0042, 0128)."""
