"""Webhooks post events to the endpoints of a workspace, signed, in several formats, again until they arrive."""
