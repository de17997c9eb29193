"""The index of streaks: a region's partitions, as the data model names them."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from rules.engagement.boards import ALL_REGIONS, partition_of, partitions_of


@given(st.sampled_from(ALL_REGIONS))
def test_a_region_of_one_shard_is_its_own_partition(region: str) -> None:
    assert partitions_of(region, 1) == [region]
    assert partitions_of(region, 3) == [region, f"{region}#1", f"{region}#2"]


@given(st.text(min_size=1), st.integers(1, 64), st.integers(0, 63))
def test_a_user_is_in_one_of_them_and_more_shards_still_have_it(user: str, shards: int, more: int) -> None:
    there = partition_of(user, "europe", shards)
    assert there == partition_of(user, "europe", shards)
    assert there in partitions_of("europe", shards)
    assert there in partitions_of("europe", shards + more)


def test_users_spread_over_the_partitions() -> None:
    count = Counter(partition_of(f"user-{number}", "asia", 8) for number in range(4000))
    assert set(count) == set(partitions_of("asia", 8))
    assert min(count.values()) > 350
