"""The staging models. Each follows column by column from its entity's declaration in rules/lake.

STAGING lists only what differs from the declaration: other names, other values, further columns. `make
models` writes NAME.sql and the columns of NAME.yml. The rest of NAME.yml is written by hand.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import yaml

from analytics.warehouse.merge_sql import LOAD_NUMBER
from rules.lake.entities import ENTITIES, Entity

LOAD_NUMBER_DOC = "the newest load that brought this row, or a row that it is made of"
# SQL would read these names as its own words, so they are quoted.
RESERVED = frozenset({"freeze", "value"})
PLACE = "^[0-9]{4}-[01][0-9]-[0-3][0-9]T[0-2][0-9]:[0-5][0-9]:[0-5][0-9][.][0-9]{6}Z$"


@dataclass(frozen=True, slots=True)
class StagedColumn:
    """A column of a staging model: its name, the SQL that it comes from, and what it says."""

    column: str
    sql: str
    doc: str = ""


@dataclass(frozen=True, slots=True)
class StagingModel:
    """A staging model of an entity. comment: the lines at the top of NAME.sql.

    newest_of: columns. Rows with the same values in them are versions of one thing; only the newest is shown.
    shown: by field, the column that is shown in the field's place. after: by field, a further column behind
    it.
    """

    entity: str
    comment: str = ""
    newest_of: tuple[str, ...] = ()
    shown: Mapping[str, StagedColumn] = field(default_factory=dict)
    after: Mapping[str, StagedColumn] = field(default_factory=dict)


def _or_zero(column: str) -> StagedColumn:
    return StagedColumn(column, f"COALESCE({column}, 0)")


STAGING: dict[str, StagingModel] = {
    "events": StagingModel("events"),
    "daily_activity": StagingModel("daily_activity"),
    "ledger": StagingModel(
        "ledger",
        "The opening entry has 0 points and no time of its own (1970-01-01), so its entry_date is NULL.\n"
        "`reverses` is the place of the entry that is undone. The lake has it as text; other text is NULL.",
        shown={
            "account_id": StagedColumn("user_id", "account_id"),
            "reverses": StagedColumn(
                "reverses",
                f"CASE WHEN reverses ~ '{PLACE}'\n"
                "        THEN CAST(REPLACE(REPLACE(reverses, 'T', ' '), 'Z', '') AS TIMESTAMP) END",
            ),
            "freeze": StagedColumn("freeze_note", '"freeze"'),
        },
        after={
            "created_at": StagedColumn(
                "entry_date",
                "CASE WHEN seq = 0 THEN NULL ELSE CAST(created_at AS DATE) END",
                "the date of created_at in UTC; NULL for the opening entry, which has no time",
            )
        },
    ),
    "profiles": StagingModel(
        "streaks",
        "The newest version of each user's profile.",
        newest_of=("user_id",),
        shown={
            **{each: _or_zero(each) for each in ("current_streak", "longest_streak", "active_days")},
            "tz_review": StagedColumn("tz_review", "COALESCE(tz_review, FALSE)"),
        },
    ),
    "lead_events": StagingModel(
        "lead_events",
        "An event that the live path could not read is here too. Its column unreadable says why.",
    ),
    "lead_memory": StagingModel(
        "lead_memory",
        "The newest version of each memory entry, including withdrawn and expired ones.",
        newest_of=("lead_organization_id", "memory_type", "memory_key"),
        shown={"value": StagedColumn("memory_value", '"value"')},
    ),
    "lead_features": StagingModel(
        "lead_features",
        "The newest version of each lead's features. An absorbed leaf has no features, only merged_into.",
        newest_of=("lead_organization_id",),
    ),
    "questions": StagingModel(
        "questions",
        "If an agent asks under the same key again, 90 days after a question closed, that is another row.",
    ),
    "responses": StagingModel("responses"),
    "answer_stats": StagingModel(
        "answer_stats",
        "The newest version of each person's stats. Who has moved to another pseudonym has only moved_to.",
        newest_of=("person",),
    ),
    "notifications": StagingModel("notifications"),
    "rules": StagingModel(
        "rules",
        "Each published version of the book of rules. While nothing is published there is none, and the\n"
        "shipped book is version 1: staging.rule_book has that one too.",
    ),
}


def columns_of(staging: StagingModel) -> list[StagedColumn]:
    """Return a staging model's columns, in order: those of the entity, further ones, and load_number."""
    found = []
    for each in ENTITIES[staging.entity].fields:
        name = f'"{each.name}"' if each.name in RESERVED else each.name
        shown = staging.shown.get(each.name, StagedColumn(each.name, name))
        found.append(StagedColumn(shown.column, shown.sql, shown.doc or each.doc))
        if each.name in staging.after:
            found.append(staging.after[each.name])
    return [*found, StagedColumn(LOAD_NUMBER, LOAD_NUMBER, LOAD_NUMBER_DOC)]


def model_sql(staging: StagingModel) -> str:
    """Return the text of NAME.sql."""
    entity = ENTITIES[staging.entity]
    lines = [f"-- Generated from rules/lake by `make models`: one column for each field of {entity.name}."]
    lines += [f"-- {line}" for line in staging.comment.splitlines()]
    listed = [
        each.sql if each.sql == each.column else f"{each.sql} AS {each.column}"
        for each in columns_of(staging)
    ]
    lines += ["SELECT", ",\n".join(f"    {each}" for each in listed)]
    return "\n".join([*lines, *_from(staging, entity)]) + "\n"


def _from(staging: StagingModel, entity: Entity) -> list[str]:
    if not staging.newest_of:
        return [f"FROM lake.{entity.name}"]
    key = ", ".join(f"v.{each}" for each in staging.newest_of)
    return [
        "FROM (",
        "    SELECT",
        "        v.*,",
        f"        ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY v.version DESC) AS place",
        f"    FROM lake.{entity.name} AS v",
        ") AS versions",
        "WHERE place = 1",
    ]


def model_yml(staging: StagingModel, written: str) -> str:
    """Return the text of NAME.yml: the columns are made anew, the rest stays as it was written by hand.

    Raises ValueError unless the text has exactly one block of columns.
    """
    listed = {each.column: each.doc for each in columns_of(staging)}
    block = yaml.safe_dump({"columns": listed}, sort_keys=False, allow_unicode=True, width=10_000)
    made, count = re.subn(r"^columns:\n(?:  .*\n)*", lambda _: block, written, flags=re.MULTILINE)
    if count != 1:
        raise ValueError(f"{staging.entity}: NAME.yml needs one block `columns:`")
    return made
