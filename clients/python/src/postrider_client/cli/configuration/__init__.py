"""`postrider apply`: changes the service to match a file (docs/guides/configuration.md).

`source` reads the file, `checking` has the service check it, `planning` compares it with the service, and `applying`
makes the changes. `kinds` is the table of objects, in the order in which they are created.
"""
