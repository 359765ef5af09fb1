"""Receivers for the staff: the state of their paces, and what the staff changes about them (docs/decisions/0363)."""
