"""Replies of hosts: `classification` decides between bounced (hard) and deferred (soft), with phrase tables."""
