"""Reading parses and verifies messages without models (decisions 0230, 0231); charsets are in `core.lib.mail`."""
