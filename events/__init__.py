"""Events: one log of all events, its order (the feed), and `/v1/events` (docs/decisions/0142)."""
