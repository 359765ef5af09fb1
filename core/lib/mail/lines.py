"""Lines of a message, as bytes with CRLF or LF at their ends."""


def has_long_line(content: bytes | bytearray, limit: int) -> bool:
    """Return whether a line has more than `limit` bytes before its end.

    The search goes from line end to line end: an expression would hold the interpreter for the whole content.
    """
    start = 0
    while len(content) - start > limit:
        line_end = content.rfind(b"\n", start, start + limit + len(b"\r\n"))
        if line_end < 0:
            return True
        start = line_end + 1
    return False
