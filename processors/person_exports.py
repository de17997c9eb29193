"""Makes an export: all data of a person in the online stores, as a ZIP of JSON and CSV (rule 10).

The ZIP is written to the disk row by row, so its size does not matter. Only its directory and the manifest
are in memory, about a kilobyte for each object. If the process dies, the next attempt makes the same file.
"""

import base64
import csv
import hashlib
import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import IO, Any

from adapters.platform.items import decode_item
from adapters.platform.spreadsheets import cell
from adapters.privacy.erasers import PersonFinder, StoreEraser
from adapters.privacy.export_jobs import ExportJob, ExportJobs
from adapters.privacy.stores import ObjectEraser, whole_lead
from adapters.privacy.tombstones import Tombstones
from adapters.settings.parts import deployed_parts
from rules.days import stamp
from rules.privacy.erasures import Person, PersonKind, excluded_stores, plan_of
from rules.privacy.inventory import stores_lacking
from rules.privacy.tombstones import lead_subject, user_subject

# Stores that an export leaves out, each with the reason.
COPIES = {
    "Redis": "a copy of what the tables say",
    "Boards": "a copy of what profile, ledger and the place in the leagues say",
    "GroupEvents": "which of the events are read together",
}
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Exporter:
    """Makes the files of export jobs."""

    jobs: ExportJobs
    tombstones: Tombstones
    stores: Callable[[datetime], Mapping[str, StoreEraser]]  # returns erasers by store, as of an instant
    hashes: Callable[[str], tuple[str, ...]]  # returns the hashes of a user's answers
    s3: Callable[[], Any]
    bucket: str

    def make(self, request: Mapping[str, str], now: datetime) -> ExportJob | None:
        """Make the export of a request of adapters.privacy.export_jobs.ExportInvoker.

        Returns the job, or None if the request is not open any more. Safe to repeat, also at the same time.
        Raises the errors of the stores.
        """
        kind, subject = PersonKind(request["kind"]), request["id"]
        name = user_subject(subject) if kind is PersonKind.USER else lead_subject(subject)
        digest = self.tombstones.digest(name)
        job = self.jobs.get(digest, now)
        if job is None or job.job_id != request["job_id"] or job.finished_at or self.tombstones.stands(name):
            return None
        stores = self.stores(now)
        if kind is PersonKind.USER:
            person = Person(digest, subject, self.hashes(subject))
        else:
            person = whole_lead(stores, Person(digest, leads=(subject,)))
        with tempfile.TemporaryFile() as file:
            write_export(file, person, stores, now)
            size = file.tell()
            file.seek(0)
            s3_object = {"Bucket": self.bucket, "Key": job.key}
            self.s3().put_object(**s3_object, Body=file, ContentType="application/zip")
        if not self.jobs.finish(job, size, now):
            self.s3().delete_object(**s3_object)
            return None
        return job


def write_export(file: IO[bytes], person: Person, stores: Mapping[str, StoreEraser], now: datetime) -> None:
    """Write the ZIP. person: a user; or a lead, whose first id was requested.

    Raises the errors of the stores.
    """
    kind = person.kind
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        files = _Files(archive, now)
        for store in plan_of(kind):
            if store.name in COPIES or store.name not in stores:
                continue
            about = {"store": store.name, "holds": store.holds}
            if store.name == "PayloadBucket":
                objects = stores[store.name]
                assert isinstance(objects, ObjectEraser)  # noqa: S101 (the stores say so)
                for name, data in objects.contents(person):
                    files.add(f"objects/{name}", [data], about)
                continue
            with tempfile.TemporaryFile("w+", encoding="utf-8", newline="") as cells:
                table = Table(cells)
                written = files.add(
                    f"{store.name}.json", table.texts(_rows(stores[store.name], person)), about
                )
                written["rows"] = table.rows
                files.add(f"{store.name}.csv", table.lines(), {"rows": table.rows, **about})
        manifest = {
            "manifest": "streakline person export",
            "format": 1,
            "kind": kind.value,
            "id": person.user_id or person.leads[0],
            "made_at": stamp(now),
            "files": files.manifest_rows,
            "left_out": COPIES | excluded_stores(kind, stores_lacking(deployed_parts())),
        }
        archive.writestr("manifest.json", json.dumps(manifest, ensure_ascii=False, indent=1))


class _Files:
    """Files of an archive. manifest_rows: the manifest's row for each."""

    def __init__(self, archive: zipfile.ZipFile, now: datetime) -> None:
        self._archive, self._now = archive, now
        self.manifest_rows: list[dict[str, Any]] = []

    def add(self, name: str, parts: Iterable[bytes], about: Mapping[str, Any]) -> dict[str, Any]:
        """Write a file part by part; returns its row of the manifest."""
        entry = zipfile.ZipInfo(name, self._now.timetuple()[:6])
        entry.compress_type = zipfile.ZIP_DEFLATED
        digest, size = hashlib.sha256(), 0
        with self._archive.open(entry, "w", force_zip64=True) as file:
            for part in parts:
                file.write(part)
                digest.update(part)
                size += len(part)
        self.manifest_rows.append({"file": name, "bytes": size, "sha256": digest.hexdigest(), **about})
        return self.manifest_rows[-1]


class Table:
    """Rows as JSON, and then as CSV with all columns that any row has.

    A nested value is JSON in its cell, and no cell is a formula (adapters.platform.spreadsheets). cells: a
    file in which the rows wait, because all columns are known only at the end.
    """

    def __init__(self, cells: IO[str]) -> None:
        self._cells, self._columns = cells, dict[str, None]()
        self.rows = 0

    def texts(self, rows: Iterable[Row]) -> Iterator[bytes]:
        """Yield the parts of a JSON array."""
        for row in rows:
            self._columns |= dict.fromkeys(row)
            flat = {name: str(cell(_flat(value))) for name, value in row.items() if value is not None}
            self._cells.write(json.dumps(flat) + "\n")
            yield (b",\n" if self.rows else b"[\n") + _json(row)
            self.rows += 1
        yield b"\n]\n" if self.rows else b"[]\n"

    def lines(self) -> Iterator[bytes]:
        """Yield the lines of the CSV file, once all parts of `texts` were read."""
        yield _line(map(cell, self._columns))
        self._cells.seek(0)
        for text in self._cells:
            row = json.loads(text)
            yield _line(row.get(name, "") for name in self._columns)


def _line(cells: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL).writerow(cells)
    return text.getvalue().encode()


def _rows(store: Any, person: Person) -> Iterator[Row]:
    yield from (
        store.rows(person) if isinstance(store, PersonFinder) else map(decode_item, store.items(person))
    )


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=_text).encode()


def _text(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode()


def _flat(value: Any) -> Any:
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, ensure_ascii=False, default=_text)
    return value
