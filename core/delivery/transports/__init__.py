"""Transports: SMTP relays, direct delivery, providers and the simulator, and the router that chooses one."""
