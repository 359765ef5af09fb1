"""Problems of the compatibility endpoints, and the description of a problem from which dialects build their errors."""

from collections.abc import Callable, Mapping
from typing import Any

from rest_framework.response import Response

from core.api.errors import InvalidFields, NotFound, problem_members
from core.api.exception_handler import ProblemResponse, logged_problem

# The members of a problem, as in core.api.errors.problem_members: status, code, detail and those of its class.
ProblemMembers = Mapping[str, Any]


def error_handler(
    render: Callable[[ProblemMembers], tuple[int, Any]],
) -> Callable[[Exception, dict[str, Any]], Response]:
    """Return DRF's exception handler for a dialect. render: returns status and body of a problem."""

    def handle(error: Exception, context: dict[str, Any]) -> Response:
        problem = logged_problem(error)
        status, body = render(problem_members(problem))
        return ProblemResponse(problem, body, status=status, headers=problem.headers)

    return handle


def endpoint_absent(detail: str) -> NotFound:
    """Return the problem of an endpoint that the provider has and Postrider has not."""
    return NotFound(detail, absent=True)


def is_absent(problem: ProblemMembers) -> bool:
    return bool(problem.get("absent"))


def invalid_field(field: str, message: str, *, code: str = "invalid") -> InvalidFields:
    return InvalidFields([{"field": field, "code": code, "detail": message}])


def first_field_error(problem: ProblemMembers) -> Mapping[str, str]:
    """Return the first entry of a validation error; an empty mapping for other problems."""
    errors = problem.get("errors") or [{}]
    return errors[0]  # type: ignore[no-any-return]
