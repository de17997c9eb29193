"""Features as of any instant equal a plain reading of all events, for whatever history and labels."""

from datetime import datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from adapters.platform.objects import FolderObjects
from analytics.leads import training_sets as module
from analytics.leads.training_sets import COLUMNS, point_in_time, training_set
from rules.leads.feature_items import evaluate_features
from rules.leads.features import FEATURES
from rules.leads.lake_entities import column_of
from rules.leads.lead_events import IDENTITY_TYPES, groups_of
from rules.leads.memory import campaign_contact, remembered_entries
from rules.leads.series import build_state
from tests.support.examples import examples
from tests.support.lead_histories import BASE, UNREADABLE, History, features_of, is_readable, row, write

QUIET = settings(
    database=None,
    derandomize=True,
    phases=(Phase.generate,),
    suppress_health_check=list(HealthCheck),
)


def table(labels: list[tuple[str, datetime]], **more: Any) -> pa.Table:
    leads, moments = zip(*labels, strict=True)
    kind = pa.timestamp("us", "America/Lima")
    return pa.table({"lead_organization_id": leads, "as_of": pa.array(moments, kind), **more})


def live(history: History, lead: str, as_of: datetime) -> dict[str, Any]:
    """What the live path's own rules make of the same events."""
    usable = [each for each in history.events if each.occurred <= as_of]
    changes = sorted(
        (groups_of(each) for each in usable if each.event_type in IDENTITY_TYPES), key=itemgetter(0)
    )
    roots = {leaf: group.root for _, groups in changes for group in groups for leaf in group.leaves}
    root = roots.get(lead, lead)
    own = [each for each in usable if roots.get(leaf := each.lead_organization_id, leaf) == root]
    state = build_state(own, as_of)
    contacts = [
        campaign_contact(each)
        for each in remembered_entries(own).values()
        if each.memory_type == "campaign_contact"
    ]
    values = evaluate_features(FEATURES, state, contacts, as_of)
    found = {column_of(each): values[each.name] for each in FEATURES}
    return found if any(map(is_readable, own)) else dict.fromkeys(found)


@settings(QUIET, max_examples=examples(3))
@given(seed=st.integers(0, 2**32))
def test_equal_to_a_plain_reading_and_to_the_live_rules(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Labels are answered some at a time; some events are unreadable, for all of them alike."""
    history, folder = History(seed, times=6), tmp_path_factory.mktemp("lake")
    objects, labels = FolderObjects(folder / "lake"), history.labels(120)
    assert not all(map(is_readable, history.events))
    write(objects, [row(each) for each in history.events], folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "LABELS_AT_ONCE", 50)
        found, known = (
            point_in_time(objects, table(labels), known_by=known_by).select(list(COLUMNS)).to_pylist()
            for known_by in (False, True)
        )
    for place, (lead, as_of) in enumerate(labels):
        assert found[place] == features_of(history.events, lead, as_of), (lead, as_of)
        assert found[place] == live(history, lead, as_of), (lead, as_of)
        assert known[place] == features_of(history.events, lead, as_of, known_by=True), (lead, as_of)


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> FolderObjects:
    folder = tmp_path_factory.mktemp("lake")
    write(FolderObjects(folder / "lake"), [row(each) for each in History(1).events], folder)
    return FolderObjects(folder / "lake")


def test_labels_keep_their_order_their_columns_and_their_repetitions(lake: FolderObjects) -> None:
    labels = History(1).labels(20) * 2
    given_ = table(labels, bought=list(range(40)), as_of_day=["x"] * 40)
    found = point_in_time(lake, given_)
    assert found.select(given_.column_names).equals(given_)
    assert found.column_names[4:] == [column_of(each) for each in FEATURES]
    assert found.schema.types[4:] == list(COLUMNS.values())
    first, again = (found.slice(at, 20).drop_columns(["bought"]) for at in (0, 20))
    assert first.equals(again)


def test_no_labels_and_no_events(lake: FolderObjects, tmp_path: Path) -> None:
    labels = table([("lead-01", BASE)])
    assert point_in_time(lake, labels.slice(1)).num_rows == 0
    (values,) = point_in_time(FolderObjects(tmp_path), labels).select(list(COLUMNS)).to_pylist()
    assert set(values.values()) == {None}


def test_the_future_does_not_leak(tmp_path: Path) -> None:
    """An event of the label's own date counts from its own microsecond on."""
    history = History(1, leads=1, events=0)
    history._add("lead-00", "purchase_completed", BASE, {"amount_minor": 700}, "x")
    write(FolderObjects(tmp_path), [row(each) for each in history.events], tmp_path)
    step = timedelta(microseconds=1)
    found = point_in_time(FolderObjects(tmp_path), table([("lead-00", BASE - step), ("lead-00", BASE)]))
    assert found["monetary_total_minor"].to_pylist() == [None, 700]
    assert found["days_since_last_purchase"].to_pylist() == [None, 0]


def test_an_unreadable_event_is_skipped(tmp_path: Path) -> None:
    """Nothing follows from one, not even that the lead did something; and the run goes on."""
    kinds = {"order": "purchase_completed", "sentiment": "message_received", "campaign": "campaign_opened"}
    made = []
    for name, payloads in UNREADABLE.items():
        for payload in payloads:
            history = History(1, leads=1, events=0)
            history._add("lead-00", kinds[name], BASE, payload, f"{name} {payload}")
            made.append(row(history.events[0]))
    made += [made[0] | {"external_event_id": text, "payload": text} for text in ("no JSON", "[1]", "7")]
    assert all(each["unreadable"] for each in made)
    later = History(1, leads=1, events=0)
    later._add("lead-00", "page_viewed", BASE + timedelta(1), {}, "x")
    write(FolderObjects(tmp_path), [*made, row(later.events[0])], tmp_path)
    labels = table([("lead-00", BASE), ("lead-00", BASE + timedelta(2))])
    before, after = point_in_time(FolderObjects(tmp_path), labels).select(list(COLUMNS)).to_pylist()
    assert set(before.values()) == {None}
    assert after == live(later, "lead-00", BASE + timedelta(2))
    assert after["recency_days"] == 1


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        (pa.table({"as_of": pa.array([BASE])}), "one column lead_organization_id"),
        (pa.table({"lead_organization_id": ["a"], "as_of": ["2026-01-01"]}), "must be a timestamp with a zone"),
        (pa.table({"lead_organization_id": ["a"], "as_of": pa.array([BASE], pa.timestamp("us"))}), "with a zone"),
        (table([("a", BASE)]).set_column(0, "lead_organization_id", pa.nulls(1, pa.string())), "null in 1 labels"),
        (table([("a", BASE)], has_purchased=[True]), "names of features: has_purchased"),
    ],
)  # fmt: skip
def test_labels_of_another_shape_are_refused(lake: FolderObjects, labels: pa.Table, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        point_in_time(lake, labels)


def test_of_another_organization_s_leads_nothing_is_known(tmp_path: Path) -> None:
    history, objects = History(7, times=4), FolderObjects(tmp_path / "lake")
    write(objects, [row(each) for each in history.events], tmp_path)
    labels = [each for each in history.labels(60) if each[0] in history.leads]

    def seen(*organizations: str) -> list[dict[str, Any]]:
        found = point_in_time(objects, table(labels), organizations=organizations or None)
        return list(found.select(list(COLUMNS)).to_pylist())

    everything, unknown = seen(), dict.fromkeys(COLUMNS)
    assert seen("org-0", "org-1") == everything
    assert seen("org-0") == [
        each if history.organization(lead) == "org-0" else unknown
        for each, (lead, _) in zip(everything, labels, strict=True)
    ]
    assert [unknown] * len(labels) == seen("nobody") != seen("org-1")


def test_a_training_set_is_a_file(lake: FolderObjects, tmp_path: Path) -> None:
    labels = table(History(1).labels(30), bought=[True] * 30)
    pq.write_table(labels, tmp_path / "labels.parquet")
    assert training_set(lake, tmp_path / "labels.parquet", tmp_path / "out.parquet", known_by=True) == 30
    assert pq.read_table(tmp_path / "out.parquet").equals(point_in_time(lake, labels, known_by=True))
