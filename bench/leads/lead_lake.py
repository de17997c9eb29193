"""A lake of a million events of leads, and labels that ask for the leads' features."""

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

EVENTS = int(os.environ.get("ROWS", "1000000"))
LEADS = EVENTS // 10
LABELS = int(os.environ.get("LABELS", LEADS))
DAYS = 730
FIRST = datetime(2024, 1, 1, tzinfo=UTC)
KINDS = (
    "purchase_completed",
    "order_refunded",
    "message_received",
    "page_viewed",
    "campaign_sent",
    "campaign_opened",
)
CHANGED = (
    *("lead_organization_id", "event_type", "amount_minor", "sentiment_milli", "campaign_id"),
    *("change_number", "change_groups"),
)


def write(folder: Path, heavy: int = 0, merged: int = 0) -> None:
    """Write the lake and the labels. heavy: this many leads share a tenth of the events and of the labels.

    merged: so many events are changes of identity, each of which makes two leads one.
    """
    import numpy as np

    chance = np.random.default_rng(2)
    ids = np.array([f"{number:08x}-0000-5000-8000-{number:012x}" for number in range(LEADS)])

    def some_leads(count: int) -> Any:
        few, all_ = chance.integers(0, max(heavy, 1), count), chance.integers(0, LEADS, count)
        return ids[np.where((chance.random(count) < 0.1) & (heavy > 0), few, all_)]

    moments = np.sort(chance.integers(0, DAYS * 86_400_000_000, EVENTS)) + int(FIRST.timestamp()) * 1_000_000
    events = _events(chance, moments, some_leads)
    _write_days(folder, moments, _with_changes(chance, events, ids, merged) if merged else events)
    _write_labels(folder, chance.choice(moments, LABELS), some_leads(LABELS))


def _events(chance: Any, moments: Any, some_leads: Callable[[int], Any]) -> Any:
    import numpy as np
    import pyarrow as pa

    kinds, numbers = chance.integers(0, len(KINDS), EVENTS), chance.integers(0, 1000, EVENTS)
    columns = {
        "lead_organization_id": pa.array(some_leads(EVENTS)),
        "event_type": pa.array(np.array(KINDS)[kinds]),
        "occurred_at": pa.array(moments, pa.timestamp("us", "UTC")),
        "received_at": pa.array(moments, pa.timestamp("us", "UTC")),
        "unreadable": pa.nulls(EVENTS, pa.string()),
        "amount_minor": pa.array(numbers, mask=kinds > 1),
        "sentiment_milli": pa.array(numbers, mask=kinds != 2),
        "campaign_id": pa.array(np.char.add("c", numbers.astype(str)), mask=kinds < 4),
        "change_number": pa.nulls(EVENTS, pa.int64()),
        "change_groups": pa.nulls(EVENTS, pa.string()),
    }
    return pa.table(columns)


def _with_changes(chance: Any, events: Any, ids: Any, merged: int) -> Any:
    """Make changes of identity of some events, numbered in order of time. Nobody is merged twice."""
    import numpy as np
    import pyarrow as pa

    places = np.sort(chance.choice(EVENTS, merged, replace=False))
    pairs = chance.permutation(ids)[: 2 * merged].reshape(merged, 2)
    changes: dict[str, list[Any]] = {name: events[name].to_pylist() for name in CHANGED}
    for number, (place, (root, leaf)) in enumerate(zip(places, pairs, strict=True)):
        told = (str(root), "leads_merged", None, None, None, number + 1, json.dumps([[root, leaf]]))
        for name, value in zip(CHANGED, told, strict=True):
            changes[name][place] = value
    for name, values in changes.items():
        at = events.column_names.index(name)
        events = events.set_column(at, name, pa.array(values, events.schema.field(name).type))
    return events


def _write_days(folder: Path, moments: Any, rows: Any) -> None:
    import numpy as np
    import pyarrow.parquet as pq

    edges = np.searchsorted(
        moments, [int((FIRST + timedelta(d)).timestamp()) * 10**6 for d in range(DAYS + 1)]
    )
    for day in range(DAYS):
        target = folder / f"curated/lead_events/dt={FIRST + timedelta(day):%Y-%m-%d}"
        target.mkdir(parents=True)
        pq.write_table(
            rows.slice(edges[day], edges[day + 1] - edges[day]), target / "day.parquet", compression="zstd"
        )


def _write_labels(folder: Path, asked: Any, leads: Any) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    labels = {"lead_organization_id": leads, "as_of": pa.array(asked, pa.timestamp("us", "UTC"))}
    pq.write_table(pa.table(labels), folder / "labels.parquet")
