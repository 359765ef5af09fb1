"""A web application that is always ready."""


def application(_environ, start_response):
    """Answer 200."""
    start_response("200 OK", [("Content-Type", "text/plain")])
    return [b"ready"]
