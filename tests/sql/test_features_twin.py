"""A lead's features are the same however they are come by, up to three years after anything happened to it.

Live (the stored state, as the app reads it), the warehouse's view of that state, the warehouse's own reading of
the events, training sets, and the plain reading of tests/support: over merges, refunds and late orders.
"""

import random
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from adapters.platform.objects import FolderObjects
from analytics.leads.training_sets import AS_OF, LEAD, point_in_time
from analytics.warehouse.build import build
from analytics.warehouse.ddl import prepare
from analytics.warehouse.duckdb_warehouse import DuckWarehouse
from analytics.warehouse.models import ancestors, models
from analytics.warehouse.statements import literal
from rules.leads.feature_changes import change_from_events
from rules.leads.feature_items import FeatureItem, features_at
from rules.leads.features import FEATURES, Input
from rules.leads.lake_entities import as_of_column, column_of
from tests.sql.conftest import TOLD_DAYS, Lake
from tests.support.lake_story import Story, states
from tests.support.lead_event_strategies import START, lead_event
from tests.support.lead_histories import History, features_of, row, write
from tests.support.lead_items import in_columns, written

TWINS = ("marts.lead_features_live", "marts.lead_features_recomputed")


def rows(warehouse: DuckWarehouse, model: str) -> dict[str, dict[str, Any]]:
    found = warehouse.rows(f"SELECT * FROM {model}")
    return {row[LEAD]: {column_of(each): row[column_of(each)] for each in FEATURES} for row in found}


def live(history: History, root: str, at: datetime) -> dict[str, Any]:
    own = [each for each in history.events if each.lead_organization_id in history.groups[root]]
    item = FeatureItem(root)
    return in_columns(
        features_at(written(item, change_from_events(item, own, min(each.occurred for each in own))), at)[0]
    )


def plain(history: History, root: str, at: datetime) -> dict[str, Any]:
    return features_of(history.events, root, at)


def past(lake: Lake, roots: list[str], at: datetime) -> dict[str, dict[str, Any]]:
    labels = pa.table({LEAD: roots, AS_OF: pa.array([at] * len(roots), pa.timestamp("us", "UTC"))})
    found = point_in_time(lake.objects, labels).to_pylist()
    return {row[LEAD]: {column_of(each): row[column_of(each)] for each in FEATURES} for row in found}


def test_live_is_read_is_the_warehouse_is_the_past(told: Lake, tmp_path: Path) -> None:
    story = Story(TOLD_DAYS)
    story.first_part()
    story.late_part()
    history, chance = story.leads, random.Random(4)
    shutil.copy(told.duck.path, tmp_path / "copy.duckdb")
    copy, known = DuckWarehouse(tmp_path / "copy.duckdb"), models()
    names = {*TWINS, *(each.name for name in TWINS for each in ancestors(known[name], known))}
    moments = [datetime.fromisoformat(each.received_at) for each in history.events]
    with copy.kept_open():
        for days in (0, chance.randrange(1, 100), 365, chance.randrange(366, 1096)):
            at = max(moments).replace(tzinfo=UTC) + timedelta(days=days, hours=chance.randrange(24))
            newest = literal(at.replace(tzinfo=None))
            copy.run(
                [f"UPDATE lake.lead_events SET received_at = {newest} WHERE event_type = 'leads_merged'"]
            )
            build(copy, only=names, full=True)
            folded, recomputed = (rows(copy, name) for name in TWINS)
            roots = sorted(folded)
            assert len(roots) > 3
            training = past(told, roots, at)
            for root in roots:
                assert folded[root] == recomputed[root] == training[root], (root, days)
                assert folded[root] == plain(history, root, at) == live(history, root, at), (root, days)


def test_a_campaign_is_ignored_after_the_days_of_the_setting_wherever_it_is_counted(tmp_path: Path) -> None:
    at, sent = START + timedelta(hours=1), range(1, 21)
    events = [lead_event(n, "campaign_sent", START - timedelta(days=n), campaign_id=f"c{n}") for n in sent]
    events.append(lead_event(30, "campaign_opened", campaign_id="c10"))
    lake, warehouse = FolderObjects(tmp_path / "lake"), DuckWarehouse(tmp_path / "w.duckdb")
    write(lake, [row(each) for each in events], tmp_path)
    moments = {as_of_column(each): at for each in Input}
    item = {LEAD: "leaf", "version": 1, "changed_at": at, "computed_at": at, **moments, **states(events, at)}
    prepare(warehouse)
    with warehouse.reading() as connection:
        for table, listed in (("lead_events", [row(each) for each in events]), ("lead_features", [item])):
            connection.register("new", pa.Table.from_pylist([{**each, "load_number": 1} for each in listed]))
            connection.execute(f"INSERT INTO lake.{table} BY NAME SELECT * FROM new")
    known = models()
    names = {*TWINS, *(each.name for name in TWINS for each in ancestors(known[name], known))}
    labels = pa.table({LEAD: ["leaf"], AS_OF: pa.array([at], pa.timestamp("us", "UTC"))})
    nobody = FeatureItem("leaf")
    for days in (7, 3, 14):
        build(
            warehouse, only=names, settings=(("campaign_grace_days", days),)
        )  # another setting alone makes them anew
        live_item = written(nobody, change_from_events(nobody, events, START))
        found = [
            *(rows(warehouse, name)["leaf"]["campaign_ignored"] for name in TWINS),
            point_in_time(lake, labels, grace_days=days).to_pylist()[0]["campaign_ignored"],
            features_of(events, "leaf", at, grace_days=days)["campaign_ignored"],
            features_at(live_item, at, days)[0]["campaign_ignored"],
        ]
        assert found == [sum(n >= days and n != 10 for n in sent)] * 5, days


def test_a_lead_without_a_state_in_the_lake_is_shown_as_it_is_stored(told: Lake, tmp_path: Path) -> None:
    shutil.copy(told.duck.path, tmp_path / "copy.duckdb")
    copy, known = DuckWarehouse(tmp_path / "copy.duckdb"), models()
    names = {TWINS[0], *(each.name for each in ancestors(known[TWINS[0]], known))}
    states = ", ".join(f"{each}_state = NULL" for each in Input)
    with copy.kept_open():
        copy.run([f"UPDATE lake.lead_features SET {states}"])
        build(copy, only=names, full=True)
        stored = {row[LEAD]: row for row in copy.rows("SELECT * FROM staging.lead_features")}
        for lead, found in rows(copy, TWINS[0]).items():
            assert found == {name: stored[lead][name] for name in found}
