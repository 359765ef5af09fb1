"""TLS policies of recipient domains: those in the database, and their daily refresh (docs/decisions/0396)."""
