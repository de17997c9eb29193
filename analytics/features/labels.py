"""The labels of a training set: a table of leads and instants, checked and numbered."""

import numpy as np
import pyarrow as pa

from analytics.lake.arrow_schema import ARROW
from rules.lake.entities import Type
from rules.lake.lead_entities import column_of
from rules.leads.features import FEATURES, Unit

LEAD, AS_OF = "lead_organization_id", "as_of"
COLUMNS = {
    column_of(each): ARROW[Type.BOOLEAN if each.unit is Unit.FLAG else Type.INTEGER] for each in FEATURES
}


def check(labels: pa.Table) -> None:
    """Raise ValueError for labels of another shape than `point_in_time` takes."""
    for name in (LEAD, AS_OF):
        if labels.column_names.count(name) != 1:
            raise ValueError(f"labels must have one column {name}")
        if labels[name].null_count:
            raise ValueError(f"{name} is null in {labels[name].null_count} labels")
    kind = labels.schema.field(AS_OF).type
    if not pa.types.is_timestamp(kind) or kind.tz is None:
        raise ValueError(f"{AS_OF} must be a timestamp with a zone, not {kind}")
    if taken := sorted(COLUMNS.keys() & set(labels.column_names)):
        raise ValueError(f"labels have columns of the names of features: {', '.join(taken)}")


def numbered(labels: pa.Table) -> pa.Table:
    """Return the labels as n (the place), lead and as_of (microseconds, UTC)."""
    moments = labels[AS_OF].cast(pa.timestamp("us", "UTC"), safe=False)  # cuts nanoseconds off
    numbers = pa.array(np.arange(labels.num_rows))
    return pa.table({"n": numbers, "lead": labels[LEAD].cast(pa.string()), "as_of": moments})
