"""Bounces, complaints and email from mail hosts over SMTP, read by `reports/`, or caught by `inbox/`."""
