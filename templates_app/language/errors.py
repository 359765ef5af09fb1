"""Template syntax errors and their position in the source."""


class TemplateSyntaxError(ValueError):
    """Raised for a template that does not compile, with a message for its author.

    line and column locate the tag that caused the error, counted from 1. Columns count characters; lines end with a
    line feed.
    """

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def syntax_error(source: str, offset: int, message: str) -> TemplateSyntaxError:
    """Return an error located at an offset of the source."""
    line = source.count("\n", 0, offset) + 1
    return TemplateSyntaxError(message, line=line, column=offset - source.rfind("\n", 0, offset))
