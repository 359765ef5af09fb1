"""Links in emails: pixel, clicks, unsubscribe and preference page, at the tracking hosts of domains."""
