"""Doctor finds mistakes of an installation, and says how to correct each: `manage.py doctor` (docs/decisions/0106)."""
