"""A web application that is always ready, as soon as the caller wants."""

import time


def application(environ, start_response):
    """Answer 200; ?seconds=N takes so long."""
    time.sleep(float(environ["QUERY_STRING"].partition("seconds=")[2] or 0))
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ready"]
