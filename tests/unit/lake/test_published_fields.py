"""A lake's schema only grows. Files of years are read by position of columns and by type, so a field stays for good.

sql/lake.md has every field that was ever released, in its order, and is not written anew without one of them.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from analytics.lake_page import BreakingChange, lake_page
from analytics.warehouse.ddl import SQL
from rules.lake.entities import ENTITIES, EVENTS, Field, Type

WRITTEN = (SQL / "lake.md").read_text(encoding="utf-8")
Fields = tuple[Field, ...]
MOOD = Field("mood", Type.TEXT, "how it felt", bytes_max=64)


def page(change: Callable[[Fields], Fields], written: str = WRITTEN) -> str:
    return lake_page(written, ENTITIES | {"events": replace(EVENTS, fields=change(EVENTS.fields))})


def changed(column: str, **values: object) -> Callable[[Fields], Fields]:
    return lambda fields: tuple(
        replace(each, **values) if each.name == column else each  # type: ignore[arg-type]
        for each in fields
    )


def test_the_page_has_every_field() -> None:
    for entity in ENTITIES.values():
        section = WRITTEN.partition(f"\n## {entity.name}\n")[2].partition("\n## ")[0]
        found = [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]
        assert found == [each.name for each in entity.fields]


def test_a_schema_grows() -> None:
    grown = page(lambda fields: (*fields, MOOD))
    assert grown.replace("| `mood` | VARCHAR(64)? | how it felt |\n", "") == WRITTEN
    wide = page(changed("zone", bytes_max=128))
    assert "| `zone` | VARCHAR(128) |" in wide
    assert "| `activity_date` | TIMESTAMP |" in page(changed("activity_date", type=Type.TIMESTAMP))
    assert "| `zone` | VARCHAR(64)? |" in page(changed("zone", required=False))
    with pytest.raises(BreakingChange, match=r"events.zone: .* VARCHAR\(128\)"):
        lake_page(wide)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda fields: fields[:-1], "events.offline_since: a published column stays, in place 20"),
        (lambda fields: (), "events.event_id: a published column stays, in place 0"),
        (lambda fields: (MOOD, *fields), "events.event_id: a published column stays, in place 0"),
        (lambda fields: (*fields[:-1], MOOD, fields[-1]), "events.offline_since: .* new ones come last"),
        (changed("zone", name="region"), "events.zone: a published column stays"),
        (changed("zone", bytes_max=63), r"events.zone: a published type only gets wider.* VARCHAR\(64\)"),
        (changed("zone", type=Type.INTEGER), "events.zone: a published type only gets wider"),
        (changed("points_awarded", type=Type.BOOLEAN), "events.points_awarded: a published type"),
        (changed("occurred_at", type=Type.DATE), "events.occurred_at: a published type only gets wider"),
        (changed("timezone", required=True), "events.timezone: earlier rows may lack it"),
        (lambda fields: (*fields, replace(MOOD, required=True)), "events.mood: .* a new column is optional"),
    ],
)
def test_what_was_published_is_not_taken_back(change: Callable[[Fields], Fields], reason: str) -> None:
    with pytest.raises(BreakingChange, match=reason):
        page(change)


def test_an_entity_stays_and_a_new_one_may_come() -> None:
    others = {name: each for name, each in ENTITIES.items() if name != "events"}
    with pytest.raises(BreakingChange, match=r"events\.event_id"):
        lake_page(WRITTEN, others)
    moods = lake_page(WRITTEN, ENTITIES | {"moods": replace(EVENTS, name="moods")})
    assert moods.startswith(WRITTEN) and "\n## moods\n" in moods
