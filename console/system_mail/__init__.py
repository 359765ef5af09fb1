"""System email reaches the users of Postrider: invitations, password resets, warnings (docs/decisions/0054)."""
