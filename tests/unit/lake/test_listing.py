"""One listing answers as many would."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects, NoObject
from analytics.curation.curate import curate
from analytics.lake.listing import FEW_TASKS, PrelistedObjects, prelist_objects
from tests.support.examples import examples
from tests.support.raw_lake import PLACE, event, put_raw, rows

NAMES = st.text("ab/", min_size=1, max_size=6).filter(
    lambda name: "//" not in name and name.strip("/") == name
)


PREFIXES = st.text("ab/", max_size=4).filter(lambda prefix: "//" not in prefix and not prefix.startswith("/"))


@given(st.sets(NAMES, max_size=12), PREFIXES, PREFIXES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(40))
def test_a_listing_tells_what_a_fresh_one_would(
    tmp_path_factory: pytest.TempPathFactory, names: set[str], covered: str, prefix: str
) -> None:
    inner = FolderObjects(tmp_path_factory.mktemp("lake"))
    for name in names:
        inner.put(name + ".x", b"1")  # a file and a folder cannot share a name
    assert list(PrelistedObjects(inner, [covered]).list(prefix)) == list(inner.list(prefix))


def test_what_comes_later_is_left_for_the_next_run(tmp_path: Path) -> None:
    inner = FolderObjects(tmp_path)
    inner.put("a/1", b"1")
    seen = PrelistedObjects(inner, ["a/"])
    inner.put("a/2", b"2")
    seen.put("b/1", b"3")
    assert [each.key for each in seen.list("a/")] == ["a/1"]
    assert [each.key for each in seen.list("b/")] == ["b/1"]
    assert (seen.get("a/2"), seen.tail("a/2", 9)) == (b"2", b"2")
    seen.delete(["a/2"])
    with pytest.raises(NoObject):
        seen.get("a/2")


def test_many_tasks_are_curated_to_the_same(tmp_path: Path) -> None:
    one, other = FolderObjects(tmp_path / "one"), FolderObjects(tmp_path / "other")
    days = [
        replace(PLACE, dt=f"2026-{month:02}-{day:02}") for month in (2, 3) for day in range(1, FEW_TASKS + 2)
    ]
    for objects in (one, other):
        for day in days:
            put_raw(objects, "a", [event(1, occurred_at=f"{day.dt}T05:00:00Z", dt=day.dt)], day)
    together = prelist_objects(one, days, [])
    assert isinstance(together, PrelistedObjects)
    counts = [curate(together, day) for day in days]
    assert counts == [curate(other, day) for day in days]
    assert rows(one) == rows(other)
    assert [curate(prelist_objects(one, days, []), day) for day in days] == counts
    assert prelist_objects(one, days[:FEW_TASKS], []) is one
