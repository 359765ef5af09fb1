"""Other ways in and back: SMTP submission, the APIs of other providers, inbound SMTP, tracking links."""
