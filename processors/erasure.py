"""Every 5 minutes: goes on with each erasure that is not finished; makes exports when asked: everything that
the online stores know of a person, as a ZIP of JSON and CSV (rule 10).
"""

import base64
import csv
import hashlib
import io
import json
import secrets
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import IO, Any

from adapters import clock, settings
from adapters.logs import Logger
from adapters.platform.aws import Unavailable, client
from adapters.platform.fence import fence_writer
from adapters.platform.items import decode_item
from adapters.platform.keyed_hash import Fingerprints, KeyedHash
from adapters.platform.redis import RedisError
from adapters.platform.spreadsheets import cell
from adapters.platform.tables import Unprocessed
from adapters.postgresql.postgres import database
from adapters.postgresql.sql import PostgresUnavailable
from adapters.privacy.erasers import IdentityEraser, PartitionEraser
from adapters.privacy.erasure_jobs import ErasureJobs, ErasureMoved, Person, lead_of, with_lead
from adapters.privacy.export_jobs import ExportJob, ExportJobs
from adapters.privacy.stores import Clients, ObjectEraser, StoreEraser, all_stores
from adapters.privacy.tombstones import Tombstones
from adapters.questions.subscription_store import KEY as SUBSCRIPTION_KEY
from adapters.settings.common import ErasureSettings
from rules.days import stamp
from rules.lake.question_entities import pseudonym
from rules.privacy.erasures import (
    PERSONS,
    PHONES,
    SEALS,
    USERS,
    Erasure,
    PersonKind,
    after_sweep,
    certificate_of,
    excluded_stores,
    hand_to_lake,
    plan_of,
    sign_certificate,
    with_count,
    with_names,
    with_store_done,
)
from rules.privacy.tombstones import (
    Act,
    JournalEntry,
    SafeToLog,
    lead_subject,
    organization_subject,
    user_subject,
)

# Makes an export: everything that the online stores know of a person, as a ZIP of JSON and CSV (rule 10).
#
# However much that is, the ZIP is written to the disk row by row; its directory and the manifest alone grow
# in memory, by about a kilobyte for each object. It may die at any call: whoever makes it again puts the same
# file.


# What is a copy of what the tables say, or counts requests of a minute.
COPIES = {
    "Redis": "a copy of what the tables say",
    "Boards": "a copy of the profile's points and streak",
    "GroupEvents": "which of the events are read together",
}
Row = Mapping[str, Any]
PUT_SECONDS = 60  # until S3 has taken a large file
# Of one run, which has 15 minutes. The next one goes on.
RUN_SECONDS = 780
SALT_BYTES = 32
UNAVAILABLE = (*Unavailable, Unprocessed, PostgresUnavailable, RedisError)


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
            identities = stores["PostgreSQL"]
            assert isinstance(identities, IdentityEraser)  # noqa: S101 (leads have a database)
            person = identities.person(Person(digest, leads=(subject,)))
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
    kind = PersonKind.USER if person.user_id else PersonKind.LEAD
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
                table = _Table(cells)
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
            for each in parts:
                file.write(each)
                digest.update(each)
                size += len(each)
        self.manifest_rows.append({"file": name, "bytes": size, "sha256": digest.hexdigest(), **about})
        return self.manifest_rows[-1]


class _Table:
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
        yield from ({"lead_organization_id": each} for each in found.leads)
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


logger = Logger(service="erasure")


class ErasureLate(SafeToLog, Exception):
    """Erasures are not finished in the time that they have. The log names them by their ids."""


@dataclass(frozen=True, slots=True)
class ErasureRunner:
    """Goes on with erasures."""

    jobs: ErasureJobs
    tombstones: Tombstones
    stores: Callable[[datetime], Mapping[str, StoreEraser]]  # by name, as of an instant
    hashes: Callable[[str], tuple[str, ...]]
    key: Callable[[], str]  # of signatures
    settles: timedelta

    def run(self, now: datetime, until: float) -> dict[str, int]:
        """Go on with all that are due; returns how many are finished, open, and late.

        until: when to stop, by time.monotonic(). One that fails stays, and the others go on.
        """
        counts = {"finished": 0, "open": 0, "late": 0}
        for erasure in self.jobs.opened():
            is_finished = self._is_up(erasure, now) and self._try(erasure, now, until)
            counts["finished" if is_finished else "open"] += 1
            if not is_finished and erasure.is_late(now):
                logger.error("late", extra={"erasure_id": erasure.erasure_id})
                counts["late"] += 1
        return counts

    def _is_up(self, erasure: Erasure, now: datetime) -> bool:
        return erasure.is_done if erasure.is_in_lake else erasure.is_due(now)

    def _try(self, erasure: Erasure, now: datetime, until: float) -> bool:
        try:
            return self.go_on(erasure, now, until)
        except ErasureMoved:
            return False
        except UNAVAILABLE as error:
            # What the store answered may quote what it was asked for.
            about = {"erasure_id": erasure.erasure_id, "error": type(error).__name__}
            logger.warning("to come again", extra=about)
            return False

    def go_on(self, erasure: Erasure, now: datetime, until: float) -> bool:
        """Go through stores until the erasure is finished (True), waits, or the time is up."""
        if erasure.is_in_lake:
            certificate = sign_certificate(certificate_of(erasure, now), self.key())
            self.jobs.finish(erasure, certificate, self._organization_digest(erasure))
            return True
        stores = self.stores(now)
        while time.monotonic() < until:
            person, erasure = self._person(erasure, stores, now)
            while store := erasure.next_store():
                if time.monotonic() >= until:
                    return False
                erasure = self._through(erasure, store, stores[store], person)
            after = after_sweep(erasure, self.settles, now)
            if after is None:
                self.jobs.go_on(hand_to_lake(self._with_lake_names(erasure), secrets.token_hex(SALT_BYTES)))
                return False
            erasure = self.jobs.go_on(after)
            if not erasure.is_due(now):
                return False
        return False

    def _organization_digest(self, erasure: Erasure) -> str:
        if not erasure.organization:
            return ""
        return self.tombstones.digest(organization_subject(erasure.erasure_id, erasure.organization))

    def _through(self, erasure: Erasure, name: str, store: StoreEraser, person: Person) -> Erasure:
        found = store.find(person)
        if erasure.counted != name:  # if it is, an earlier attempt has counted, and died while it removed
            if name == "Subscriptions":  # nothing else has the names that the lake has for phones
                phones = (pseudonym(decode_item(each)[SUBSCRIPTION_KEY]) for each in found)
                erasure = with_names(erasure, PHONES, phones)
            if name == "RewardsLedger":  # the lake commits by them to what it takes away
                erasure = with_names(erasure, SEALS, _chain_heads(store, person))
            erasure = self.jobs.go_on(with_count(erasure, name, len(found)))
        store.remove(found)
        return self.jobs.go_on(with_store_done(erasure, name))

    def _with_lake_names(self, erasure: Erasure) -> Erasure:
        if erasure.kind is PersonKind.LEAD:
            return erasure  # its leaves are known
        hashes = self.hashes(erasure.subject)
        named = with_names(erasure, USERS, [erasure.subject])
        return with_names(named, PERSONS, map(pseudonym, hashes))

    def _person(
        self, erasure: Erasure, stores: Mapping[str, StoreEraser], now: datetime
    ) -> tuple[Person, Erasure]:
        """Return whom to look for; of a lead, tombstones of all that leads to it are written first."""
        if erasure.kind is PersonKind.USER:
            return Person(erasure.digest, erasure.subject, self.hashes(erasure.subject)), erasure
        identities = stores["PostgreSQL"]
        assert isinstance(identities, IdentityEraser)  # noqa: S101 (leads have a database)
        person = identities.person(lead_of(erasure))
        noted = set(lead_of(erasure).subjects())
        fresh = [self.tombstones.digest(each) for each in person.subjects() if each not in noted]
        # Readers of the journal look for what is new: an entry bears the instant at which it is written.
        self.jobs.note([JournalEntry(stamp(now), each, Act.ERASED, erasure.erasure_id) for each in fresh])
        after = with_lead(erasure, person)
        return person, self.jobs.go_on(after) if after != erasure else erasure


def _chain_heads(ledger: StoreEraser, person: Person) -> list[str]:
    """Return where chains of hashes begin in a ledger, each with its salt."""
    assert isinstance(ledger, PartitionEraser)  # noqa: S101 (it is a table)
    entries = map(decode_item, ledger.items(person))
    return [f"{each['seq']} {each['seal']}" for each in entries if each.get("seal")]


@settings.wiring(ErasureSettings)
def _parts(config: ErasureSettings) -> ErasureRunner:
    dynamodb = fence_writer(client("dynamodb"))
    clients = Clients(
        dynamodb,
        lambda: client("s3"),
        lambda: client("sns"),
        database(config.identity_url) if config.identity_url else None,
    )
    key = KeyedHash(lambda: client("secretsmanager"), config.erasure_secret_arn)
    people = Fingerprints(lambda: client("secretsmanager"), config.fingerprint_secret_arn)
    return ErasureRunner(
        ErasureJobs(dynamodb, config.erasures_table),
        Tombstones(dynamodb, config.erasures_table, key),
        lambda now: all_stores(clients, config, now),
        lambda user_id: people.of_user(user_id).all,
        lambda: key.ring.keys[0],
        timedelta(seconds=config.settle_seconds),
    )


def _exporter() -> Exporter:
    config, runner = settings.read_settings(ErasureSettings), _parts()
    return Exporter(
        ExportJobs(fence_writer(client("dynamodb")), config.limits_table),
        runner.tombstones,
        runner.stores,
        runner.hashes,
        lambda: client("s3", answer_seconds=PUT_SECONDS),
        config.payload_bucket,
    )


@logger.inject_lambda_context
def handler(event: dict[str, Any], _context: Any) -> dict[str, int]:
    """Lambda entry: the schedule, or what adapters.privacy.export_jobs asks for.

    Returns what ErasureRunner.run does, and raises ErasureLate at its end; or how many exports were made.
    """
    now = clock.now()
    if asked := event.get("export"):
        job = _exporter().make(asked, now)
        logger.info("exported", extra={"export_id": asked["job_id"], "bytes": job.size if job else 0})
        return {"exports": int(job is not None)}
    counts = _parts().run(now, time.monotonic() + RUN_SECONDS)
    logger.info("erased", extra={**counts, "at": stamp(now)})
    if counts["late"]:
        raise ErasureLate(f"{counts['late']} erasures, which the log names")
    return counts
