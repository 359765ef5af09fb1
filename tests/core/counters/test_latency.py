"""Buckets and percentiles of latencies."""

from collections import Counter
from itertools import pairwise
from math import ceil

from hypothesis import given
from hypothesis import strategies as st

from core.counters.latency import BOUNDS, bucket_of, estimated_sum, percentile, share_within
from tests.rows import each

SECONDS = st.one_of(st.floats(0, 200), st.floats(0, 2.5 * 86_400), st.sampled_from(BOUNDS))
DAY = 86_400


def test_bounds_grow_by_a_quarter_at_most_from_a_tenth_of_a_second_to_two_days():
    # Counters are stored by the position of a bound: a changed bound would change what they mean.
    assert (len(BOUNDS), BOUNDS[0], BOUNDS[-1]) == (68, 0.1, 2 * DAY)
    assert all(1 < upper / lower <= 1.25 for lower, upper in pairwise(BOUNDS))


@each(
    ("seconds", "bucket"),
    [(-1, 0), (0, 0), (0.1, 0), (0.1001, 1), (10, 21), (10.001, 22), (2 * DAY, 67), (2 * DAY + 1, 68), (9 * DAY, 68)],
)
def test_a_bucket_includes_its_upper_bound(seconds, bucket):
    assert bucket_of(seconds) == bucket


@given(st.lists(SECONDS, min_size=1, max_size=200), st.sampled_from([0.5, 0.95, 0.99, 1]))
def test_a_percentile_is_in_the_bucket_of_the_exact_one(times, share):
    exact = sorted(times)[ceil(share * len(times)) - 1]
    found = percentile(Counter(map(bucket_of, times)), share)
    assert found is not None
    assert abs(bucket_of(found) - min(bucket_of(exact), 67)) <= 1


@given(st.lists(SECONDS, min_size=1, max_size=200), st.sampled_from([10, 60, 600]))
def test_shares_within_a_bound_are_exact(times, limit):
    histogram = Counter(map(bucket_of, times))
    assert share_within(histogram, limit) == sum(time <= limit for time in times) / len(times)


def test_a_percentile_is_interpolated_within_its_bucket():
    assert [percentile({21: 4}, share) for share in (0.25, 0.5, 1)] == [8.523, 9.015, 10.0]
    assert percentile({0: 1, 67: 0, 68: 1}, 1) == 2 * DAY
    assert percentile({}, 0.5) is percentile({3: 0}, 0.5) is share_within({}, 10) is None


def test_a_sum_is_estimated_by_the_middle_of_each_bucket():
    assert estimated_sum({0: 2, 1: 0, 68: 1}) == 0.1 + 2 * DAY
