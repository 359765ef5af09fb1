"""The dashboard for the members of workspaces, built on the Django admin: `pages/`, `ui/`, `auth/`, `staff/`."""
