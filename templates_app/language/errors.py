"""A fault of a template's syntax and the place where it stands."""


class TemplateSyntaxError(ValueError):
    """Raised with a sentence for the author; line and column, from 1, are those of the tag at fault.

    Columns count characters; a line ends with a line feed.
    """

    def __init__(self, message: str, *, line: int, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


def fault(source: str, at: int, message: str) -> TemplateSyntaxError:
    """Return the error that points at an offset of the source."""
    line = source.count("\n", 0, at) + 1
    return TemplateSyntaxError(message, line=line, column=at - source.rfind("\n", 0, at))
