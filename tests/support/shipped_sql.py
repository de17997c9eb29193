"""Every statement that we generate or ship for Redshift, by where it comes from."""

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import date
from pathlib import Path
from typing import Any

from analytics.leads import lead_items, lead_repair
from analytics.recompute import warehouse_disagreements
from analytics.reconcile import run_report
from analytics.warehouse.build import Builder, ModelBuild, build
from analytics.warehouse.ddl import declared_tables, prepare
from analytics.warehouse.load import create_staging, merge_statements
from analytics.warehouse.models import check, fingerprint, models
from analytics.warehouse.statements import Copy, refuse_oversized
from analytics.warehouse.warehouse import grant_analysts
from local.operate.html_report import mart_plots
from local.smoke import parts as smoke_parts
from rules.lake.entities import LOADED

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = ("sql/README.md", "docs/runbook.md")


class Recorder:
    """Keeps what it is sent, and answers each query with the same rows. It refuses what Redshift would."""

    def __init__(self, rows: Sequence[dict[str, Any]] = ()) -> None:
        self.sent: list[str] = []
        self.answer = list(rows)

    def run(self, statements: Sequence[str]) -> None:
        refuse_oversized(statements)
        self.sent += statements

    def rows(self, sql: str) -> list[dict[str, Any]]:
        refuse_oversized([sql])
        self.sent.append(sql)
        return self.answer

    def kept_open(self) -> AbstractContextManager[None]:
        return nullcontext()


def _narrow_columns() -> list[dict[str, Any]]:
    """What a catalog says of columns of which each text is too short."""
    return [
        {
            "table_name": table.name,
            "column_name": column.name,
            "data_type": column.family,
            "size_max": 1,
            "digits": None,
            "decimals": None,
        }
        for table in declared_tables().values()
        for column in table.columns
    ]


def shipped() -> Iterator[tuple[str, str]]:
    yield from _of_the_night()
    yield from _of_reports()
    for document in DOCUMENTS:
        text = (ROOT / document).read_text(encoding="utf-8")
        for number, sql in enumerate(re.findall(r"```sql\n(.*?)```", text, re.DOTALL)):
            yield f"{document} {number}", sql


def _of_the_night() -> Iterator[tuple[str, str]]:
    flows: dict[str, Any] = {"prepare": prepare, "build": build, "tests": check, "grants": grant_analysts}
    for name, flow in flows.items():
        recorder = Recorder()
        flow(recorder)
        yield from ((f"{name} {number}", sql) for number, sql in enumerate(recorder.sent))
    grown = Recorder(_narrow_columns())
    prepare(grown)
    yield from ((f"widen {number}", sql) for number, sql in enumerate(grown.sent))
    for model in models().values():
        for kind, is_current in (("VIEW", False), ("BASE TABLE", False), ("BASE TABLE", True)):
            for number, sql in enumerate(_builder(kind, is_current).statements(model)):
                yield f"{model.name} {kind} {is_current} {number}", sql
    for entity in LOADED.values():
        columns = [(column.name, column.type) for column in declared_tables()[entity.name].columns[:-1]]
        copy = Copy(
            "staged_0", "s3://lake/runs/one/load.manifest", "arn:aws:iam::123456789012:role/copy"
        ).sql()
        for number, sql in enumerate(
            [create_staging("staged_0", columns), copy, *merge_statements(entity, [columns, columns[:-1]])]
        ):
            yield f"load {entity.name} {number}", sql


def _builder(kind: str, is_current: bool) -> Builder:
    """A builder who finds all models as relations of a kind; is_current: built before a day of rows came."""
    known, with_a_day = models(), Recorder([{"dt": date(2026, 1, 31)}])
    built = {name: ModelBuild(fingerprint(each, known), {}, None) for name, each in known.items()}
    kinds = dict.fromkeys(known, kind)
    return Builder(with_a_day, False, known, kinds, built if is_current else {}, dict.fromkeys(LOADED, 1))


def _of_reports() -> Iterator[tuple[str, str]]:
    recorder = Recorder()
    mart_plots(recorder)
    yield from ((f"report {number}", sql) for number, sql in enumerate(recorder.sent))
    for module in (run_report, warehouse_disagreements, smoke_parts, lead_items, lead_repair):
        for name, text in vars(module).items():
            if isinstance(text, str) and text.lstrip().startswith("SELECT"):
                given = {"user": "u", "day": "2026-01-31", "table": "marts.streaks_recomputed"}
                given |= {"columns": "balance", "groups": "'abc'", "digits": "'0a1'"}
                given |= {"lead": "'l'", "leaves": "'l'", "until": "'2026-01-31'"}
                yield f"{module.__name__} {name}", text.format(**given)
