"""Streams separate kinds of email of a workspace, so that recipients can unsubscribe from one (docs/decisions/0176)."""
