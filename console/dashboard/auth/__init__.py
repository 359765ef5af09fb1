"""Accounts of people: sign-in, second factor, passwords, identity providers, and the chosen workspace."""
