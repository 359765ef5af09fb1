"""`/v1/events`: pages of the log, and event streams."""
