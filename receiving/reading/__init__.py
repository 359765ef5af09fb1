"""Reading parses and verifies stored messages, and finds the emails that they answer (docs/decisions/0230, 0231)."""
