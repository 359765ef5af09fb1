"""Messages: headers, MIME parts, text from HTML, rewritten links, and the DKIM signature."""
