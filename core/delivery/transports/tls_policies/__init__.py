"""TLS policies of recipient domains: DANE (RFC 7672) and MTA-STS (RFC 8461); see docs/decisions/0396."""
