"""Messages to read: their queue with shares, and those that are read again."""
