"""Makes an export: everything that the online stores know of a person, as a ZIP of JSON and CSV (rule 10).

The ZIP is written to the disk row by row, however much it is; its directory and the manifest alone grow in
memory, by about a kilobyte for each object. It may die at any call: whoever makes it again puts the same
file.
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
from adapters.privacy.erasers import IdentityEraser
from adapters.privacy.export_jobs import ExportJob, ExportJobs
from adapters.privacy.stores import ObjectEraser, StoreEraser, whole_lead
from adapters.privacy.tombstones import Tombstones
from rules.days import stamp
from rules.privacy.erasures import Person, PersonKind, excluded_stores, plan_of
from rules.privacy.tombstones import lead_subject, user_subject

# Stores that an export leaves out, each with what it holds instead.
COPIES = {
    "Redis": "a copy of what the tables say",
    "Boards": "a copy of the profile's points and streak",
    "GroupEvents": "which of the events are read together",
}
Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Exporter:
    """Makes the files of export jobs."""

    jobs: ExportJobs
    tombstones: Tombstones
    stores: Callable[[datetime], Mapping[str, StoreEraser]]  # by name, as of an instant
    hashes: Callable[[str], tuple[str, ...]]  # of a user's answers
    s3: Callable[[], Any]
    bucket: str

    def make(self, asked: Mapping[str, str], now: datetime) -> ExportJob | None:
        """Make what adapters.privacy.export_jobs.ExportInvoker asks for; returns the job; None: nobody waits.

        Safe to repeat, also at the same time. Raises what the stores raise.
        """
        kind, subject = PersonKind(asked["kind"]), asked["id"]
        name = user_subject(subject) if kind is PersonKind.USER else lead_subject(subject)
        digest = self.tombstones.digest(name)
        job = self.jobs.get(digest, now)
        if job is None or job.job_id != asked["job_id"] or job.finished_at or self.tombstones.stands(name):
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
            where = {"Bucket": self.bucket, "Key": job.key}
            self.s3().put_object(**where, Body=file, ContentType="application/zip")
        if not self.jobs.finish(job, size, now):
            self.s3().delete_object(**where)
            return None
        return job


def write_export(file: IO[bytes], person: Person, stores: Mapping[str, StoreEraser], now: datetime) -> None:
    """Write the ZIP. person: a user, or a lead, of whose leads the first was asked about.

    Raises what the stores raise.
    """
    kind = person.kind
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        files = _Files(archive, now)
        for store in plan_of(kind):
            if store.name in COPIES:
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
        manifest = _manifest(kind, person.user_id or person.leads[0], files.manifest_rows, now)
        archive.writestr("manifest.json", json.dumps(manifest, ensure_ascii=False, indent=1))


class _Files:
    """Files of an archive. manifest_rows: what the manifest says of each."""

    def __init__(self, archive: zipfile.ZipFile, now: datetime) -> None:
        self._archive, self._now = archive, now
        self.manifest_rows: list[dict[str, Any]] = []

    def add(self, name: str, parts: Iterable[bytes], about: Mapping[str, Any]) -> dict[str, Any]:
        """Write a file part by part; returns what the manifest says of it."""
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
    """Rows as JSON, exact, and then as CSV, with all columns that any row has: what is nested is JSON there,
    and no cell runs. cells: a file for the cells meanwhile, because the columns are known at the end.
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
        """Yield the lines of the CSV file."""
        yield _line(map(cell, self._columns))
        self._cells.seek(0)
        for each in self._cells:
            flat = json.loads(each)
            yield _line(flat.get(name, "") for name in self._columns)


def _line(cells: Iterable[object]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerow(cells)
    return text.getvalue().encode()


def _manifest(kind: PersonKind, subject: str, files: list[dict[str, Any]], now: datetime) -> dict[str, Any]:
    return {
        "manifest": "streakline person export",
        "format": 1,
        "kind": kind.value,
        "id": subject,
        "made_at": stamp(now),
        "files": files,
        "left_out": COPIES | excluded_stores(kind),
    }


def _rows(store: Any, person: Person) -> Iterator[Row]:
    if isinstance(store, IdentityEraser):
        found = store.person(person)
        yield from ({"lead_organization_id": lead} for lead in found.leads)
        yield from ({"channel": channel, "external_id": name} for channel, name in found.identities)
        return
    yield from map(decode_item, store.items(person))


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, default=_text).encode()


def _text(value: Any) -> str:
    return base64.b64encode(bytes(value)).decode()


def _flat(value: Any) -> Any:
    if isinstance(value, (dict, list, bool)):
        return json.dumps(value, ensure_ascii=False, default=_text)
    return value
