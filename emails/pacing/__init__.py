"""The paces of receivers in the database, shared by the workers (docs/decisions/0362)."""
