"""What owners and operators use: dashboard, management API, documentation, system email."""
