"""Everything that the online stores know of a person, as a ZIP of JSON and CSV with a manifest (rule 10)."""

import base64
import csv
import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from adapters.platform.items import Item, plain
from adapters.platform.spreadsheets import cell
from adapters.privacy.other_erasers import EXPORTS, ObjectEraser
from adapters.privacy.people_erasers import IdentityEraser
from adapters.privacy.person import Person
from adapters.privacy.stores import StoreEraser
from rules.days import stamp
from rules.privacy.erasures import PersonKind, left_alone, plan_of

# What is a copy of what the tables say, or counts requests of a minute.
COPIES = {
    "Redis": "a copy of what the tables say",
    "AnswerLines": "what becomes answers and events within seconds",
    "Boards": "a copy of the profile's points and streak",
    "GroupEvents": "which of the events are read together",
}
Rows = Sequence[Mapping[str, Any]]


def export_zip(
    kind: PersonKind, subject: str, person: Person, stores: Mapping[str, StoreEraser], now: datetime
) -> bytes:
    """Return the ZIP. subject: the id that was asked about. Raises what the stores raise."""
    made = io.BytesIO()
    files: list[dict[str, Any]] = []
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, data: bytes, **about: Any) -> None:
            archive.writestr(zipfile.ZipInfo(name, now.timetuple()[:6]), data, zipfile.ZIP_DEFLATED)
            digest = hashlib.sha256(data).hexdigest()
            files.append({"file": name, "bytes": len(data), "sha256": digest, **about})

        for store in plan_of(kind):
            if store.name in COPIES:
                continue
            about = {"store": store.name, "holds": store.holds}
            if store.name == "PayloadBucket":
                for name, data in _objects(stores[store.name], person):
                    add(f"objects/{name}", data, **about)
                continue
            rows = _rows(stores[store.name], person)
            add(f"{store.name}.json", _json(rows), rows=len(rows), **about)
            add(f"{store.name}.csv", csv_table(rows), rows=len(rows), **about)
        archive.writestr("manifest.json", _json(_manifest(kind, subject, files, now)))
    return made.getvalue()


def _manifest(kind: PersonKind, subject: str, files: list[dict[str, Any]], now: datetime) -> dict[str, Any]:
    return {
        "manifest": "streakline export",
        "format": 1,
        "kind": kind.value,
        "id": subject,
        "made_at": stamp(now),
        "files": files,
        "left_out": COPIES | left_alone(kind),
    }


def _rows(store: Any, person: Person) -> Rows:
    if isinstance(store, IdentityEraser):
        found = store.person(person)
        told = [{"lead_organization_id": each} for each in found.leads]
        return told + [{"channel": channel, "external_id": name} for channel, name in found.identities]
    items: Iterable[Item] = store.items(person)
    return [plain(each) for each in items]


def _objects(store: Any, person: Person) -> Iterator[tuple[str, bytes]]:
    assert isinstance(store, ObjectEraser)  # noqa: S101 (the stores say so)
    return (each for each in store.contents(person) if not each[0].startswith(EXPORTS))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1, default=_text).encode()


def _text(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode()


def csv_table(rows: Rows) -> bytes:
    """Return a table with all columns that any row has; what is nested is JSON, and no cell runs."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    table = csv.writer(text)
    table.writerow(map(cell, columns))
    for row in rows:
        table.writerow(cell(_flat(row[name])) if name in row else "" for name in columns)
    return text.getvalue().encode()


def _flat(value: Any) -> Any:
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, ensure_ascii=False, default=_text)
    return value
