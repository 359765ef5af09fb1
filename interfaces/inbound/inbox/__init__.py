"""The built-in inbox, in place of mail hosts: of a development installation, or of one whose emails are captured."""
