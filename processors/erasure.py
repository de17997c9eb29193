"""Continues each unfinished erasure every 5 minutes, and makes the exports that are requested (rule 10).

An erasure begins with a tombstone. A first sweep deletes from all stores. When every writer knows the
tombstone, a second sweep deletes what was written meanwhile. Then the nights delete from lake and warehouse.
When a whole night finds nothing, the certificate is signed (rules/privacy/erasures.py).
"""

import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from adapters import clock
from adapters.bootstrap import ClientOf, bootstrap
from adapters.logs import Logger, error_summary
from adapters.platform.aws import Unavailable
from adapters.platform.items import decode_item
from adapters.platform.keyed_hash import Fingerprints, KeyedHash
from adapters.platform.redis import RedisError
from adapters.platform.tables import Unprocessed
from adapters.postgresql.sql import PostgresUnavailable
from adapters.privacy.erasers import Clients, ItemEraser, NamesInLake, StoreEraser
from adapters.privacy.erasure_jobs import ErasureJobs, ErasureMoved
from adapters.privacy.export_jobs import ExportJobs
from adapters.privacy.stores import (
    ErasureSettings,
    OwnErasureSettings,
    all_stores,
    whole_lead,
)
from adapters.privacy.tombstones import Tombstones
from processors.person_exports import Exporter
from rules.days import stamp
from rules.lake.pseudonyms import pseudonym
from rules.privacy.erasures import (
    PERSONS,
    SEALS,
    USERS,
    Erasure,
    Person,
    PersonKind,
    after_sweep,
    certificate_of,
    hand_to_lake,
    lead_of,
    sign_certificate,
    with_count,
    with_lead,
    with_names,
    with_store_done,
)
from rules.privacy.tombstones import (
    Act,
    ErasureLogEntry,
    SafeToLog,
    organization_subject,
)

PUT_SECONDS = 60  # S3 may take so long for a large file
# A run ends after so long, because the function has 15 minutes. The next run continues.
RUN_SECONDS = 780
SALT_BYTES = 32
UNAVAILABLE = (*Unavailable, Unprocessed, PostgresUnavailable, RedisError)

logger = Logger(service="erasure")


class ErasureLate(SafeToLog, Exception):
    """Erasures are not finished in the time that they have. The log names them by their ids."""


@dataclass(frozen=True, slots=True)
class ErasureRunner:
    """Continues erasures."""

    jobs: ErasureJobs
    tombstones: Tombstones
    stores: Callable[[datetime], Mapping[str, StoreEraser]]  # returns erasers by store, as of an instant
    hashes: Callable[[str], tuple[str, ...]]  # returns the hashes of a user's answers
    key: Callable[[], str]  # returns the key that signs certificates
    settles: timedelta  # after so long every writer knows a tombstone

    def run(self, now: datetime, until: float) -> dict[str, int]:
        """Continue all erasures that are due; returns how many are finished, open, and late.

        until: when to stop, by time.monotonic(). One that fails stays open, and does not stop the others.
        """
        counts = {"finished": 0, "open": 0, "late": 0}
        for erasure in self.jobs.opened():
            has_work = erasure.is_done if erasure.is_in_lake else erasure.is_due(now)
            is_finished = has_work and self._try(erasure, now, until)
            counts["finished" if is_finished else "open"] += 1
            if not is_finished and erasure.is_late(now):
                logger.error("late", extra={"erasure_id": erasure.erasure_id})
                counts["late"] += 1
        return counts

    def _try(self, erasure: Erasure, now: datetime, until: float) -> bool:
        try:
            return self._continue(erasure, now, until)
        except ErasureMoved:
            return False
        except UNAVAILABLE as error:
            # The error's own words are not logged, because they may quote the person's ids.
            about = {"erasure_id": erasure.erasure_id, "error": error_summary(error)}
            logger.warning("to come again", extra=about)
            return False

    def _continue(self, erasure: Erasure, now: datetime, until: float) -> bool:
        """Take the next steps of an erasure; returns whether it is finished."""
        if not erasure.is_in_lake:
            self._sweep(erasure, now, until)
            return False
        certificate = sign_certificate(certificate_of(erasure, now), self.key())
        self.jobs.finish(erasure, certificate, self._organization_digest(erasure))
        return True

    def _sweep(self, erasure: Erasure, now: datetime, until: float) -> None:
        """Delete from store after store, sweep after sweep, until the erasure waits or the time is up.

        It waits until every writer knows the tombstone, or for the nights that delete from the lake.
        """
        stores = self.stores(now)
        while time.monotonic() < until:
            person, erasure = self._person(erasure, stores, now)
            while store := erasure.next_store():
                if time.monotonic() >= until:
                    return
                if store in stores:
                    erasure = self._erase_from(erasure, store, stores[store], person)
                else:  # its part was turned off since the erasure began
                    erasure = self.jobs.save(with_store_done(erasure, store))
            after = after_sweep(erasure, self.settles, now)
            if after is None:  # no further sweep is needed
                self.jobs.save(hand_to_lake(self._with_lake_names(erasure), secrets.token_hex(SALT_BYTES)))
                return
            erasure = self.jobs.save(after)
            if not erasure.is_due(now):
                return

    def _organization_digest(self, erasure: Erasure) -> str:
        if not erasure.organization:
            return ""
        return self.tombstones.digest(organization_subject(erasure.erasure_id, erasure.organization))

    def _erase_from(self, erasure: Erasure, name: str, store: StoreEraser, person: Person) -> Erasure:
        """Delete a person's items from one store; first store their number and the lake's names for them."""
        items = store.find(person)
        # An earlier attempt may have stored the number, and died while it deleted. Then it stays.
        if erasure.counted != name:
            if isinstance(store, NamesInLake):
                erasure = with_names(erasure, store.lake_kind, store.lake_names(items))
            if name == "RewardsLedger":  # with these salts the lake commits to the fields that it takes away
                erasure = with_names(erasure, SEALS, _chain_heads(store, person))
            erasure = self.jobs.save(with_count(erasure, name, len(items)))
        store.remove(items)
        return self.jobs.save(with_store_done(erasure, name))

    def _with_lake_names(self, erasure: Erasure) -> Erasure:
        """Return an erasure with the lake's names for a user. A lead's names are in the erasure already."""
        if erasure.kind is PersonKind.LEAD:
            return erasure
        hashes = self.hashes(erasure.subject)
        named = with_names(erasure, USERS, [erasure.subject])
        return with_names(named, PERSONS, map(pseudonym, hashes))

    def _person(
        self, erasure: Erasure, stores: Mapping[str, StoreEraser], now: datetime
    ) -> tuple[Person, Erasure]:
        """Return the person to erase, and the erasure with all ids of that person. A lead may have got more
        leaves and identities since the last sweep. Their tombstones are written first.
        """
        if erasure.kind is PersonKind.USER:
            return Person(erasure.digest, erasure.subject, self.hashes(erasure.subject)), erasure
        stored = lead_of(erasure)
        person = whole_lead(stores, stored)
        new_subjects = [subject for subject in person.subjects() if subject not in set(stored.subjects())]
        digests = map(self.tombstones.digest, new_subjects)
        # Readers of the erasure log read from its newest entry on. So these entries have the present instant.
        self.jobs.note(
            [ErasureLogEntry(stamp(now), digest, Act.ERASED, erasure.erasure_id) for digest in digests]
        )
        after = with_lead(erasure, person)
        return person, self.jobs.save(after) if after != erasure else erasure


def _chain_heads(ledger: StoreEraser, person: Person) -> list[str]:
    """Return the entries that begin a chain of hashes, as texts of their seq and the chain's salt."""
    assert isinstance(ledger, ItemEraser)  # noqa: S101 (it is a table)
    entries = map(decode_item, ledger.items(person))
    return [f"{entry['seq']} {entry['salt']}" for entry in entries if entry.get("salt")]


@dataclass(frozen=True, slots=True)
class _Parts:
    runner: ErasureRunner
    exporter: Exporter


@bootstrap(ErasureSettings)
def _parts(config: OwnErasureSettings, client: ClientOf) -> _Parts:
    dynamodb = client("dynamodb")
    clients = Clients(
        dynamodb,
        lambda: client("s3"),
        lambda: client("sns"),
    )
    key = KeyedHash(lambda: client("secretsmanager"), config.erasure_secret_arn)
    people = Fingerprints(lambda: client("secretsmanager"), config.fingerprint_secret_arn)
    runner = ErasureRunner(
        ErasureJobs(dynamodb, config.erasures_table),
        Tombstones(dynamodb, config.erasures_table, key),
        lambda now: all_stores(clients, config, now),
        lambda user_id: people.of_user(user_id).all,
        lambda: key.ring.keys[0],
        timedelta(seconds=config.settle_seconds),
    )
    exporter = Exporter(
        ExportJobs(dynamodb, config.limits_table),
        runner.tombstones,
        runner.stores,
        runner.hashes,
        lambda: client("s3", answer_seconds=PUT_SECONDS),
        config.payload_bucket,
    )
    return _Parts(runner, exporter)


@logger.inject_lambda_context
def handler(event: dict[str, Any], _context: Any) -> dict[str, int]:
    """Lambda entry: the schedule, or a request of adapters.privacy.export_jobs.

    For the schedule it returns the counts of ErasureRunner.run, or raises ErasureLate. For a request it
    returns {"exports"}: how many were made.
    """
    now = clock.now()
    if request := event.get("export"):
        job = _parts().exporter.make(request, now)
        logger.info("exported", extra={"export_id": request["job_id"], "bytes": job.size if job else 0})
        return {"exports": int(job is not None)}
    counts = _parts().runner.run(now, time.monotonic() + RUN_SECONDS)
    logger.info("erased", extra={**counts, "at": stamp(now)})
    if counts["late"]:
        raise ErasureLate(f"{counts['late']} erasures, which the log names")
    return counts
