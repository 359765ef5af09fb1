"""The asynchronous client. `bin/async_client.py` generates all modules except `transport` from the synchronous ones."""
