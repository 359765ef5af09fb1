"""Rules: what an email must satisfy, whichever entrance it comes through (docs/decisions/0152).

`/v1`, SMTP submission and the dialects translate a request to these fields, and none repeats a rule. Rules that need
the database, such as the sending domain, are in emails.accept.checks.
"""
