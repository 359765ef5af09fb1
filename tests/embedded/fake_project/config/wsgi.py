"""A web application that is always ready."""

import time


def application(environ, start_response):
    """Answer 200 after ?seconds=N."""
    time.sleep(float(environ["QUERY_STRING"].partition("seconds=")[2] or 0))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ready"]
