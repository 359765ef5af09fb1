"""Compatibility endpoints at the root."""

import pytest
from django.urls import Resolver404, resolve

from interfaces.compat.apps import DIALECTS
from interfaces.compat.endpoints import first_segments
from tests.interfaces.compat.test_tables import ROWS
from tests.rows import each

BEGINNINGS = sorted({(dialect, path.split("/")[1].lower()) for dialect, _, path, _ in ROWS})


@each(("dialect", "segment"), BEGINNINGS)
def test_every_path_of_the_tables_works_at_the_root(dialect, segment):
    assert segment in first_segments(dialect)


@each("segment", sorted(set().union(*map(first_segments, DIALECTS))))
def test_no_path_of_postrider_begins_like_one_of_a_dialect(segment):
    for path in (f"/{segment}", f"/{segment}/", f"/{segment}/x", f"/{segment}/x/y"):
        with pytest.raises(Resolver404):
            resolve(path)


@pytest.mark.django_db
def test_resends_management_works_at_the_root(settings, resend):
    settings.COMPAT_AT_ROOT = ["resend"]
    listed = resend.client.get("/domains", headers=resend.headers)
    assert [domain["name"] for domain in listed.json()["data"]] == ["alice.example"]
    assert resend.client.get("/contacts", headers=resend.headers).status_code == 501
