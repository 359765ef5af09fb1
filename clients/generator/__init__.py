"""Generates the parts of the client libraries that follow from the OpenAPI document (docs/decisions/0289).

`document` reads the document, `names` has the names that people chose, `python` and `javascript` write the files.
Python 3.9 and the standard library are enough: packages are built from a checkout with it.
"""
