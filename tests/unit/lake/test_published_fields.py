"""A lake's schema only grows. Files of years are read by position of columns and by type, so a field stays for good.

published_fields.txt has every field that was ever released, in its order.
"""

from pathlib import Path

import pytest

from rules.lake.entities import ENTITIES, Entity

PUBLISHED = [
    line.split() for line in (Path(__file__).parent / "published_fields.txt").read_text().splitlines() if line
]
# A type may become one of these, as every value of the old one is a value of the new one.
WIDER = {"integer": {"text"}, "date": {"timestamp", "text"}, "boolean": {"text"}, "timestamp": {"text"}}


@pytest.mark.parametrize("entity", ENTITIES.values(), ids=lambda each: each.name)
def test_a_published_field_keeps_its_place_and_its_type(entity: Entity) -> None:
    published = [
        (name.partition(".")[2], kind) for name, kind in PUBLISHED if name.startswith(f"{entity.name}.")
    ]
    found = [(each.name, each.type.value) for each in entity.fields]
    for place, (name, kind) in enumerate(published):
        assert place < len(found), f"{entity.name}.{name} is gone: a published field stays"
        assert found[place][0] == name, f"{entity.name}: new fields come last, and {name} is in place {place}"
        assert found[place][1] in {kind, *WIDER.get(kind, ())}, f"{entity.name}.{name} was {kind}"
    new = found[len(published) :]
    assert not new, (
        "tests/unit/lake/published_fields.txt lacks: "
        + ", ".join(f"{entity.name}.{name} {kind}" for name, kind in new)
        + " (add it after the entity's other fields)"
    )
    assert all(not each.required for each in entity.fields[len(published) :]), "a new field is optional"
