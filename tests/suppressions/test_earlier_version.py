"""The previous version works beside rows of streams: its statements name no stream."""

import pytest
from django.db import connection

from core.lib.ids import new_uuid, to_uuid
from suppressions.models import Suppression
from suppressions.services import suppress_address

pytestmark = pytest.mark.django_db
# As in the version before streams.
SUPPRESS = """
INSERT INTO suppressions_suppression (id, workspace_id, email, address_key, reason)
VALUES (%(id)s, %(workspace)s, %(email)s, lower(%(email)s), 'bounce')
ON CONFLICT (workspace_id, address_key) DO UPDATE SET address_key = EXCLUDED.address_key RETURNING id
"""
FIND = """
SELECT s.email FROM unnest(%(keys)s::text[]) AS given (address_key)
  JOIN suppressions_suppression s USING (address_key) WHERE s.workspace_id = %(workspace)s
"""


def test_an_address_can_be_suppressed_beside_the_row_of_a_stream(alice):
    suppress_address(alice.workspace, address="ada@example.com", reason="unsubscribe", stream="news")
    workspace = to_uuid(alice.workspace.id, prefix="ws_")
    with connection.cursor() as cursor:
        ids = []
        for _ in range(2):
            cursor.execute(SUPPRESS, {"id": new_uuid(), "workspace": workspace, "email": "ada@example.com"})
            ids.append(cursor.fetchone()[0])
        cursor.execute(FIND, {"keys": ["ada@example.com"], "workspace": workspace})
        assert cursor.fetchall() == [("ada@example.com",)]
    assert ids[0] == ids[1]
    assert sorted(Suppression.objects.values_list("stream", flat=True)) == ["", "news"]
