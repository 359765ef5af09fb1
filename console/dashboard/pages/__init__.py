"""Pages of owners: a section of the sidebar is a module or a package."""
