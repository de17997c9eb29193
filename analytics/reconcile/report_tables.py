"""The tables of a nightly run's report for people, as Markdown."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

SHOWN_MAX = 50
PARTITION = ("entity", "date", "hour", "why")


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return a heading and a table of at most 50 rows, or `None.`."""
    if not rows:
        return f"## {title}\n\nNone."
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(_cell(value) for value in row) for row in rows[:SHOWN_MAX]]
    more = f"\n\n{len(rows) - SHOWN_MAX} more." if len(rows) > SHOWN_MAX else ""
    return f"## {title}\n\n" + "\n".join(f"| {line} |" for line in lines) + more


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ")[:120]


def partitions(noted: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return the rows of a table with the columns PARTITION."""
    return [(each["entity"], each["dt"], each["hour"] or "day", each["reason"]) for each in noted]


def rebuilt(notes: Mapping[str, Any]) -> Iterator[str]:
    """Yield what there is to say of a rebuild (see analytics.lake.run_notes)."""
    if before := notes["raw_deleted_before"]:
        yield (
            f"**Raw objects that came before {before} are deleted** (RawRetentionDays). Partitions of "
            "that time were made anew from their own rows and from the quarantine, if these are still there."
        )
    if notes["without_raw"]:
        yield table("Partitions made anew without raw objects", PARTITION, partitions(notes["without_raw"]))


def quiet(warehouse: Mapping[str, Any]) -> Iterator[str]:
    """Yield why the warehouse was not asked, if it was not."""
    if run_id := warehouse["quiet_since"]:
        yield (
            f"**The warehouse was not asked.** Since run {run_id} there is nothing to be loaded, built, "
            "erased or compared in it. The counts of the curation are of that run."
        )


def warehouse_tables(warehouse: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the night did not get done in the warehouse."""
    not_done = [(each["what"], each["state"], each["reason"]) for each in warehouse["not_done"]]
    yield table("Not done in the warehouse", ("what", "state", "why"), not_done)
    yield table("Partitions that the warehouse lacks", ("entity", "number"), list(warehouse["lacks"].items()))
