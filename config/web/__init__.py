"""The web process: gunicorn's worker with a share of its threads for each workspace (docs/decisions/0178)."""
