"""Emptying of the tables after a transactional test."""

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test import TransactionTestCase

from tests import empty_tables
from tests.conftest import Account, make_account, make_domain


def rows() -> dict[str, int]:
    """Return the number of rows of each table that has any."""
    counts = {model._meta.db_table: model._base_manager.count() for model in apps.get_models() if model._meta.managed}
    return {table: count for table, count in counts.items() if count}


@pytest.mark.django_db(transaction=True)
class TestEmptyTables:
    def test_all_rows_but_permissions_are_deleted_and_sequences_continue(self, alice: Account, monkeypatch):
        make_domain(alice.workspace, "alice.example")
        permissions = Permission.objects.count()
        last = Group.objects.create(name="first").pk
        # Row by row, then with TRUNCATE.
        for max_bytes in (2**30, 0):
            monkeypatch.setattr(empty_tables, "MAX_BYTES", max_bytes)
            empty_tables.empty_tables(TransactionTestCase())
            assert set(rows()) == {"django_content_type", "auth_permission"}, max_bytes
            assert Permission.objects.count() == permissions, max_bytes
            make_account("bob")
            assert Group.objects.create(name="next").pk == last + 1, max_bytes
            last += 1

    def test_a_large_table_is_truncated(self):
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO auth_group (name) SELECT repeat('x', 120) || n FROM generate_series(1, 10000) n"
            )
            empty_tables.empty_tables(TransactionTestCase())
            cursor.execute("SELECT pg_relation_size('auth_group')")
            assert cursor.fetchone() == (0,)
