"""`/v1/events`: pages and streams of the log."""
