"""The asynchronous client. bin/clients.py generates its resources."""
