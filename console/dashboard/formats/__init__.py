"""Formats of dates and times, by language (Django's FORMAT_MODULE_PATH)."""
