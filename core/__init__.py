"""The basis of resources: workspaces, delivery, HTTP conventions, counters, and code without business logic."""
