"""Checks of a start that compare the database with the settings; `config/checks.py` has those of the settings alone."""
