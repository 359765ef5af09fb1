"""Reports about domains that other organizations send: of DMARC, and of TLS."""
