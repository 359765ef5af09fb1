"""Connections to PostgreSQL: from the URL in the settings, with a failover and before processes are forked."""
