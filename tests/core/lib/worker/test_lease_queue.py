"""The round robin over groups: where it continues, and when it wraps."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from uuid import UUID

from core.lib.worker.lease_queue import FIRST, Claim, Cursor


@dataclass
class GroupsInMemory:
    """A fairness rule with one share for each group in turn; `turns` has the start and the earlier claims of each."""

    groups: Sequence[int]
    turns: list[tuple[UUID, int]] = field(default_factory=list)

    def claim_turn(self, limit, *, after, claimed):
        self.turns.append((after, len(claimed)))
        found = [UUID(int=group) for group in self.groups if UUID(int=group) > after]
        served = found[:limit]
        return [Claim(group, 1, 1) for group in served], served[-1] if len(served) < len(found) else FIRST


def test_a_cursor_continues_after_the_last_group_served():
    cursor, rule = Cursor(), GroupsInMemory([1, 2, 3, 4])
    assert [claim.key.int for _ in range(4) for claim in cursor.claim(2, rule)] == [1, 2, 3, 4, 1, 2, 3, 4]
    assert len(rule.turns) == 4


def test_a_claim_that_is_too_small_continues_once_with_the_first_group():
    cursor, rule = Cursor(), GroupsInMemory([1, 2, 3])
    cursor.claim(2, rule)
    assert [claim.key.int for claim in cursor.claim(3, rule)] == [3, 1, 2]
    assert rule.turns[1:] == [(UUID(int=2), 0), (FIRST, 1)]


def test_a_claim_from_the_first_group_takes_one_turn():
    rule = GroupsInMemory([1])
    assert len(Cursor().claim(10, rule)) == 1
    assert rule.turns == [(FIRST, 0)]
