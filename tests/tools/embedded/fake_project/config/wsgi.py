"""A web application that is always ready."""

import time
from pathlib import Path


def application(environ, start_response):
    """Answer 200; after ?after=PATH, when the file exists."""
    if name := environ["QUERY_STRING"].partition("after=")[2]:
        Path(name).with_suffix(".waiting").touch()
        while not Path(name).exists():
            time.sleep(0.02)
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ready"]
