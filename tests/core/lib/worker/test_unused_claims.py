"""Claims that the database interrupts: kept until it responds, then given back once."""

import pytest
from django.db import InterfaceError, OperationalError

from core.lib.worker.unused_claims import UnusedClaims
from tests.rows import each


class Database:
    """given_back: the batches of claims. failures: the next calls that fail."""

    def __init__(self):
        self.given_back, self.failures = [], 0

    def give_back(self, claims):
        if self.failures:
            self.failures -= 1
            raise OperationalError("gone")
        self.given_back.append(claims)


def claim_and_fail(unused, error):
    with unused.claiming() as claims:
        claims.extend("ab")
        raise error


@each("error", [OperationalError, InterfaceError])
def test_claims_are_kept_until_the_database_responds(error):
    database = Database()
    unused = UnusedClaims(database.give_back)
    with pytest.raises(error):
        claim_and_fail(unused, error)
    database.failures = 1
    with pytest.raises(OperationalError):
        unused.give_back()
    assert unused
    for _ in range(2):
        unused.give_back()
    assert (database.given_back, bool(unused)) == ([["a", "b"]], False)


def test_another_error_uses_the_attempts():
    unused = UnusedClaims(Database().give_back)
    with pytest.raises(ZeroDivisionError):
        claim_and_fail(unused, ZeroDivisionError)
    assert not unused
