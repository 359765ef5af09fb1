"""Public templates of other services: created through their API, sent, and compared with their own engines."""
