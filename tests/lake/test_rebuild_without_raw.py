"""A partition whose raw objects are gone is made anew from its own rows and from the quarantine."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects, Objects
from analytics.curation.curate import curate
from analytics.lake.bookkeeping import Counts
from analytics.lake.layout import QUARANTINE
from rules.lake.entities import ENTITIES, EVENTS, Entity, Field, Type
from tests.support.raw_lake import ARRIVED, DAY, PLACE, event, put_raw, quarantined, rows, total

MOOD = Field("mood", Type.INTEGER, "how it felt")
GROWN = replace(EVENTS, fields=(*EVENTS.fields, MOOD))
STRICT = replace(
    EVENTS, fields=tuple(replace(f, type=Type.INTEGER) if f.name == "zone" else f for f in EVENTS.fields)
)


def declared(patch: pytest.MonkeyPatch, entity: Entity) -> None:
    patch.setitem(ENTITIES, "events", entity)


def test_lines_leave_the_quarantine(objects: FolderObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    declared(monkeypatch, STRICT)
    gone = put_raw(objects, "a", [event(1), event(2, zone=7), b"nonsense", event(1)])
    put_raw(objects, "b", [event(3)])
    assert curate(objects, PLACE) == Counts(5, 1, 0, 4)
    objects.delete([gone])
    declared(monkeypatch, EVENTS)
    put_raw(objects, "c", [event(4), b"new nonsense"])
    reasons: list[str] = []
    assert (
        curate(objects, PLACE, rebuild=True, note_lack=reasons.append) == total(objects) == Counts(7, 4, 1, 2)
    )
    assert sorted(row["idempotency_key"] for row in rows(objects)) == ["k1", "k2", "k3", "k4"]
    assert reasons == [f"1 raw objects are gone, hour=05/arrived={ARRIVED}/a first"]
    assert sorted(each["raw"] for each in quarantined(objects)) == ["new nonsense", "nonsense"]
    before = [(each.key, objects.get(each.key)) for each in objects.list("")]
    assert curate(objects, PLACE, rebuild=True) == Counts(7, 4, 1, 2)
    assert [(each.key, objects.get(each.key)) for each in objects.list("")] == before


def test_fields_leave_extra(objects: FolderObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    key = put_raw(
        objects, "a", [event(1, mood=3, note="x"), event(2), event(3, mood="high"), event(4, note="mood")]
    )
    curate(objects, DAY)
    objects.delete([key])
    declared(monkeypatch, GROWN)
    curate(objects, DAY, rebuild=True)
    found = {row["idempotency_key"]: (row["mood"], row["extra"]) for row in rows(objects)}
    assert found == {
        "k1": (3, '{"note":"x"}'),
        "k2": (None, None),
        "k3": (None, '{"mood":"high"}'),
        "k4": (None, '{"note":"mood"}'),
    }


def test_lines_that_the_quarantine_has_forgotten_are_not_counted(objects: FolderObjects) -> None:
    key = put_raw(objects, "a", [event(1), event(1), b"nonsense"])
    assert curate(objects, PLACE) == Counts(3, 1, 1, 1)
    objects.delete([key, *(each.key for each in objects.list(QUARANTINE))])
    assert curate(objects, PLACE, rebuild=True) == total(objects) == Counts(2, 1, 1, 0)


def test_an_object_that_was_replaced_is_read_anew_and_its_old_refusal_is_gone(objects: FolderObjects) -> None:
    gone = put_raw(objects, "a", [event(1)])
    put_raw(objects, "b", [b"nonsense"])
    assert curate(objects, PLACE) == Counts(2, 1, 0, 1)
    objects.delete([gone])
    put_raw(objects, "b", [event(2), b"still nonsense"])
    assert curate(objects, PLACE, rebuild=True) == total(objects) == Counts(3, 2, 0, 1)
    assert [each["raw"] for each in quarantined(objects)] == ["still nonsense"]


class Dying(FolderObjects):
    """Dies when the quarantine is brought up to date, after the file is written."""

    def delete(self, keys: Iterable[str]) -> None:
        keys = list(keys)
        if any(each.startswith(QUARANTINE) for each in keys):
            raise KeyboardInterrupt
        super().delete(keys)


def test_a_death_before_the_quarantine_is_brought_up_to_date_changes_no_count(
    objects: FolderObjects, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared(monkeypatch, STRICT)
    key = put_raw(objects, "a", [event(1), event(2)])
    curate(objects, PLACE)
    objects.delete([key])
    declared(monkeypatch, EVENTS)
    with pytest.raises(KeyboardInterrupt):
        curate(Dying(objects.root), PLACE, rebuild=True)
    assert curate(objects, PLACE, rebuild=True) == total(objects) == Counts(2, 2, 0, 0)
    assert quarantined(objects) == []


LINES = st.lists(
    st.one_of(
        st.just(b"nonsense"),
        st.builds(
            event,
            st.integers(0, 4),
            version=st.sampled_from(["0", "1", "2"]),
            zone=st.sampled_from(["UTC", ...]),
            mood=st.sampled_from([1, "low", None, ...]),
        ),
    ),
    max_size=6,
)


@given(objects_of=st.lists(LINES, min_size=1, max_size=3))
def test_it_makes_what_a_rebuild_from_raw_makes(
    tmp_path_factory: pytest.TempPathFactory, objects_of: list[list[Any]]
) -> None:
    """But for values that only today's declaration refuses: these stay in `extra`, raw lines go to quarantine."""
    found = []
    for is_gone in (False, True):
        objects: Objects = FolderObjects(tmp_path_factory.mktemp("lake"))
        with pytest.MonkeyPatch.context() as patch:
            declared(patch, STRICT)
            some = [
                [each for each in lines if each == b"nonsense" or each.get("mood") != "low"]
                for lines in objects_of
            ]
            keys = [put_raw(objects, f"{number}", lines) for number, lines in enumerate(some) if lines]
            curate(objects, PLACE)
            declared(patch, GROWN)
            if is_gone:
                objects.delete(keys)
            counts = curate(objects, PLACE, rebuild=True)
        found.append((counts, rows(objects), len(quarantined(objects))))
    assert found[0] == found[1]
