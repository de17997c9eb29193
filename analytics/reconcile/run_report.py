"""A nightly run's report: reports/{run_id}.json for machines, reports/{run_id}.md for people."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.platform.objects import NoObject, Objects
from analytics.lake.layout import report_key, run_key
from analytics.reconcile.reconcile_all import RESULT

LISTED_MAX = 1000
SHOWN_MAX = 50
LEADS_MAX = 100
PLACE = ("user_id", "table", "key")
CURATION = """SELECT entity, SUM(rows_in) AS rows_in, SUM(curated) AS curated, SUM(duplicates) AS duplicates,
SUM(quarantined) AS quarantined FROM lake.curation GROUP BY entity ORDER BY entity"""
LEADS = f"""SELECT lead_organization_id, different FROM marts.lead_quality
WHERE is_settled AND different_features > 0 ORDER BY lead_organization_id LIMIT {LEADS_MAX}"""  # noqa: S608 (our own)
Report = dict[str, Any]


NOTHING: Report = {"counts": {}, "different": [], "unrepaired": [], "contended": [], "frozen": []}


def gather(objects: Objects, run_id: str, now: datetime, error: Any = None) -> Report:
    """Put together what the nightly run's steps have stored. error: why it ended early, if it did.

    The warehouse's part stays empty; `with_warehouse` fills it in. Raises NoObject if the reconciliation has
    stored nothing and there is no error to report.
    """
    try:
        found = json.loads(objects.get(run_key(run_id, RESULT)))
    except NoObject:
        if error is None:
            raise
        found = {**NOTHING, "differences": [], "disagreements": []}
    return {
        "run_id": run_id,
        "made_at": now.isoformat(),
        "error": error,
        "counts": found["counts"],
        "different": found["different"],
        "unrepaired": found["unrepaired"],
        "contended": found["contended"],
        "frozen": found["frozen"][:LISTED_MAX],
        "differences": found["differences"][:LISTED_MAX],
        "ledger_and_lake": found["disagreements"][:LISTED_MAX],
        "sql_and_numpy": [],
        "leads": [],
        "failed_tests": _tests(objects, run_id),
        "curation": [],
    }


def with_warehouse(
    report: Report,
    twin: Sequence[Any],
    curation: Sequence[Mapping[str, Any]],
    leads: Sequence[Mapping[str, Any]],
) -> Report:
    """Return the report with the warehouse's part.

    twin: users for whom the two recomputes disagree. curation: counts by entity. leads: rows of LEADS.
    """
    return {
        **report,
        "leads": [
            {"lead": row["lead_organization_id"], "features": row["different"].split()} for row in leads
        ],
        "sql_and_numpy": list(twin)[:LISTED_MAX],
        "curation": [{name: _count(value) for name, value in row.items()} for row in curation],
    }


def _tests(objects: Objects, run_id: str) -> list[Any]:
    try:
        return list(json.loads(objects.get(run_key(run_id, "tests.json"))))
    except NoObject:
        return []


def _count(value: Any) -> Any:
    return value if isinstance(value, str) else int(value)


def publish(objects: Objects, report: Report) -> list[str]:
    """Store the report in both forms; returns their keys."""
    texts = {"json": json.dumps(report, indent=1, default=str), "md": markdown(report)}
    keys = {suffix: report_key(report["run_id"], suffix) for suffix in texts}
    for suffix, text in texts.items():
        objects.put(keys[suffix], text.encode())
    return list(keys.values())


def markdown(report: Report) -> str:
    """Return the report as text for people: figures, then what is wrong, shortened."""
    counts = [(name.replace("_", " "), number) for name, number in report["counts"].items()]
    listed = [
        (*(each[name] for name in PLACE), each["attribute"] or "(item)", each["stored"], each["expected"])
        for each in report["differences"]
    ]
    curation = [tuple(row.values()) for row in report["curation"]]
    tests = [(each["model"], each["test"], each["rows"]) for each in report["failed_tests"]]
    twin = [(each["user_id"], each["numpy"], each["sql"]) for each in report["sql_and_numpy"]]
    leads = [(each["lead"], ", ".join(each["features"])) for each in report["leads"]]
    frozen = [(each,) for each in report["frozen"]]
    parts = [
        f"# Run {report['run_id']}\n\nMade at {report['made_at']}.",
        *([f"**It failed:** {json.dumps(report['error'])}"] if report["error"] else []),
        _table("Figures", ("what", "number"), counts),
        _table("Differences", ("user", "table", "date", "attribute", "stored", "expected"), listed),
        _table("Ledger and lake disagree", ("user", "what"), report["ledger_and_lake"]),
        _table("Redemptions wait for an admin", ("user",), frozen),
        _table("Recompute in SQL and by numpy disagree", ("user", "numpy", "sql"), twin),
        _table("Leads whose features are not what their events say", ("lead", "features"), leads),
        _table("Failed tests", ("model", "test", "rows"), tests),
        _table("Curation", ("entity", "in", "curated", "duplicates", "quarantined"), curation),
    ]
    return "\n\n".join(parts) + "\n"


def _table(title: str, head: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    if not rows:
        return f"## {title}\n\nNone."
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(_cell(value) for value in row) for row in rows[:SHOWN_MAX]]
    more = f"\n\n{len(rows) - SHOWN_MAX} more." if len(rows) > SHOWN_MAX else ""
    return f"## {title}\n\n" + "\n".join(f"| {line} |" for line in lines) + more


def _cell(value: Any) -> str:
    text = "" if value is None else str(value)
    return text.replace("|", "\\|").replace("\n", " ")[:120]
