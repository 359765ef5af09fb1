"""A workspace that is older than all counted emails, and requests for its analytics."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from core.workspaces.api import authentication
from core.workspaces.models import Workspace
from tests.conftest import Account, Api

NOON = datetime(2026, 3, 15, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def workspace(alice: Account) -> Workspace:
    Workspace.objects.update(created_at=NOON - timedelta(days=1000))
    authentication.cache.clear()
    alice.workspace.refresh_from_db()
    return alice.workspace


def get_analytics(api: Api, path: str = "/analytics", **query: Any) -> dict[str, Any]:
    """Return the body of a response; `from_` stands for the parameter `from`."""
    response = api.get(path, {name.rstrip("_"): value for name, value in query.items()})
    assert response.status_code == 200, response.content
    body: dict[str, Any] = response.json()
    return body
