"""Parts of all pages: layout, navigation, tables, labels, scoping, and the middleware of pages."""
