"""Reports: what a message to a return path says about which recipient, in any of the formats of mail servers."""
