"""`/v1/domains/:id/dmarc` and `/v1/domains/:id/tls-reports`."""
