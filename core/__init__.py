"""What resources are built from: workspaces, delivery, HTTP conventions, counters, and code without business logic."""
