"""Templates give emails a subject, HTML and text, with versions, previews and a `language/` for their data."""
