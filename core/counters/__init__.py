"""Counters: hourly and daily sums, and the deltas folded into them (docs/decisions/0007, 0042, 0128)."""
