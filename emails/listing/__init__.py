"""Lists of emails, for `/v1`, the dashboard and the dialects: filters, search, counts and the CSV export."""
