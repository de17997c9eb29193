"""An erasure: whom it erases, the order of its stores, its state, and its certificate (rule 10).

It has two parts. *Sweeps* go through the online stores until one finds nothing. Then *passes* go through lake
and warehouse, one each night. In this order: the person; the plans of stores; the state of an erasure, and
what each sweep and pass makes of it; the signed certificate, which stays when the erasure is deleted.
"""

import hashlib
import hmac
import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from rules.days import stamp, unstamp
from rules.privacy.inventory import INVENTORY, Fate, Store, StoreKind
from rules.privacy.tombstones import identity_subject, lead_subject, user_subject

SWEEPS_MIN = 2  # through the online stores; the last one must find nothing
SWEEPS_MAX = 10  # from then on each sweep waits before it begins
DEADLINE = timedelta(days=7)  # then the alarm rings; the law allows a month
PASSES_MIN = 2  # nights through the lake
ONLINE = (StoreKind.TABLE, StoreKind.BUCKET, StoreKind.CACHE, StoreKind.DATABASE)
# Stores that lead to others are erased after these: days and events name Redis's keys, counters in Limits
# name phones, events name claims and objects, and identities name leads. All other stores come between.
FIRST = ("Redis", "PayloadBucket", "IdempotencyKeys", "GroupEvents")
LAST = ("BPEvents", "DailyActivity", "Limits", "Event", "PostgreSQL")
# Stores with users' data that the inventory has no user's key of: a scan finds the data.
FOUND_OTHERWISE = frozenset({"Boards"})
# The night erases from these. The lake's entities and parts are stores of their own.
LAKE_STORES = ("LakeBucket", "Warehouse")
LAKE_KINDS = (StoreKind.ENTITY, StoreKind.LAKE)
# Kinds of names (Erasure.known) that lead to rows of the lake. They are kept until the lake is done.
USERS, LEADS, PERSONS, PHONES = "users", "leads", "persons", "phones"
# Where chains of hashes begin in a user's ledger, each with its salt: `12 SALT` (rule 19).
SEALS = "seals"
LAKE_NAMES = (USERS, LEADS, PERSONS, PHONES, SEALS)


class PersonKind(StrEnum):
    """Who is erased."""

    USER = "user"
    LEAD = "lead"


@dataclass(frozen=True, slots=True)
class Person:
    """A user, or a lead with all its leaves, in every form that a store may know them by."""

    digest: str  # the keyed hash of the id that was named
    user_id: str = ""
    hashes: tuple[str, ...] = ()  # of a user, under which the answers are stored
    organization: str = ""  # of a lead
    leads: tuple[str, ...] = ()  # lead_organization_ids
    # (channel, external id) of these leads, in their organization
    identities: tuple[tuple[str, str], ...] = ()

    @property
    def kind(self) -> PersonKind:
        """Whether this is a user or a lead."""
        return PersonKind.USER if self.user_id else PersonKind.LEAD

    def subjects(self) -> Iterator[str]:
        """Yield the subjects of the person's tombstones (rules.privacy.tombstones)."""
        if self.user_id:
            yield user_subject(self.user_id)
        yield from map(lead_subject, self.leads)
        yield from (identity_subject(self.organization, *identity) for identity in self.identities)


def plan_of(kind: PersonKind) -> tuple[Store, ...]:
    """Return the online stores that an erasure goes through, in this order."""
    stores = [
        store
        for store in INVENTORY
        if store.kind in ONLINE
        and store.fate is Fate.DELETED
        and store.name not in LAKE_STORES
        and (_key_of(store, kind) or (kind is PersonKind.USER and store.name in FOUND_OTHERWISE))
    ]
    return tuple(sorted(stores, key=lambda store: _store_rank(store.name)))


def _store_rank(name: str) -> int:
    if name in FIRST:
        return FIRST.index(name)
    return len(FIRST) + 1 + LAST.index(name) if name in LAST else len(FIRST)


def _key_of(store: Store, kind: PersonKind) -> str:
    return store.user_key if kind is PersonKind.USER else store.lead_key


def nightly_plan_of(kind: PersonKind) -> tuple[Store, ...]:
    """Return the parts of lake and warehouse that the nightly passes of an erasure go through."""
    return tuple(
        store
        for store in INVENTORY
        if (store.kind in LAKE_KINDS or store.name == "Warehouse")
        and store.fate is not Fate.IMPERSONAL
        and (_key_of(store, kind) or store.kind is StoreKind.LAKE)
    )


def excluded_stores(kind: PersonKind, lacking: Collection[str] = ()) -> dict[str, str]:
    """Return the stores that an erasure of this kind does not go through, each with the reason in words.

    lacking: stores that there are not, because the deployment leaves their parts out.
    """
    planned = {store.name for store in (*plan_of(kind), *nightly_plan_of(kind))} - {*lacking}
    return {
        store.name: "not deployed" if store.name in lacking else _fate_text(store)
        for store in INVENTORY
        if store.name not in planned
    }


def _fate_text(store: Store) -> str:
    if store.fate is Fate.REFUSED and store.expires_days:
        return f"refused by the tombstone, and gone after {store.expires_days} days"
    if store.fate is Fate.REFUSED:
        return "refused by the tombstone"
    if store.fate is Fate.EXPIRES:
        return f"gone after {store.expires_days} days"
    if store.name == "LakeBucket":
        return "its entities and parts are told one by one"
    return "nothing of a person" if store.fate is Fate.IMPERSONAL else "nothing of this kind of person"


@dataclass(frozen=True, slots=True)
class Erasure:
    """An erasure that is not finished. At its end it is deleted, and only its certificate stays."""

    erasure_id: str
    kind: PersonKind
    subject: str  # the id that was named
    digest: str  # of the subject's tombstone
    started_at: str  # a stamp
    organization: str = ""  # of a lead; "" if it is unknown
    # Other names that lead to the person, such as a lead's leaves, by kind (USERS ...)
    known: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    sweep: int = 1  # the number of the sweep through the online stores, from 1
    done: tuple[str, ...] = ()  # the stores that this sweep has finished
    counted: str = ""  # the store whose items are counted and not yet deleted
    found: Mapping[str, int] = field(default_factory=dict)  # store -> how many items all sweeps have found
    found_now: int = 0  # how many items this sweep, or the last night, has found
    waits_until: str = ""  # a stamp; "" if it does not wait
    salt: str = ""  # of the random names in the lake; "" while the online stores are not done
    passes: int = 0  # how many nights have gone through the lake
    last_run: str = ""  # the id of the last night's run that is counted in `found`
    lacking: tuple[str, ...] = ()  # stores that there are not, because the deployment leaves their parts out
    version: int = 0  # counts writes

    @property
    def is_in_lake(self) -> bool:
        """Whether the online stores are done, and the lake is not."""
        return bool(self.salt)

    @property
    def is_done(self) -> bool:
        """Whether the lake is done, too. Only the certificate is left to do."""
        return self.passes >= PASSES_MIN and not self.found_now

    @property
    def online_plan(self) -> tuple[Store, ...]:
        """The online stores that it goes through, in this order."""
        return tuple(store for store in plan_of(self.kind) if store.name not in self.lacking)

    @property
    def awaits(self) -> tuple[str, ...]:
        """The stores that the erasure still has to go through, for the first time or again."""
        nightly = tuple(store.name for store in nightly_plan_of(self.kind))
        if self.is_in_lake:
            return nightly
        return (*(store.name for store in self.online_plan if store.name not in self.done), *nightly)

    @property
    def deadline(self) -> str:
        """When it is late (a stamp). Then the alarm ErasureErrors rings."""
        return stamp(unstamp(self.started_at) + DEADLINE)

    def next_store(self) -> str | None:
        """Return the store to go through next; None at the end of a sweep."""
        return next((store.name for store in self.online_plan if store.name not in self.done), None)

    def is_due(self, now: datetime) -> bool:
        """Return whether it need not wait any longer."""
        return self.waits_until <= stamp(now)

    def is_late(self, now: datetime) -> bool:
        """Return whether it should have finished before."""
        return now - unstamp(self.started_at) > DEADLINE


def with_count(erasure: Erasure, store: str, count: int) -> Erasure:
    """Return an erasure that has counted a store's items, which are deleted next."""
    counts = {**erasure.found, store: erasure.found.get(store, 0) + count}
    return replace(erasure, counted=store, found=counts, found_now=erasure.found_now + count)


def with_store_done(erasure: Erasure, store: str) -> Erasure:
    """Return an erasure that is done with a store in this sweep."""
    return replace(erasure, done=(*erasure.done, store), counted="")


def after_sweep(erasure: Erasure, settles: timedelta, now: datetime) -> Erasure | None:
    """Return an erasure at its next sweep; None: it needs none. settles: then all know the tombstone."""
    if erasure.sweep >= SWEEPS_MIN and not erasure.found_now:
        return None
    # Every sweep but the first begins when all writers know the tombstone.
    begins = unstamp(erasure.started_at) + settles
    if erasure.sweep >= SWEEPS_MAX:
        begins = max(begins, now + settles)
    return replace(erasure, sweep=erasure.sweep + 1, done=(), found_now=0, waits_until=stamp(begins))


def with_names(erasure: Erasure, kind: str, names: Iterable[str]) -> Erasure:
    """Return an erasure with further names by which the lake has the person. kind: USERS, PERSONS ..."""
    all_names = dict.fromkeys([*erasure.known.get(kind, ()), *names])
    return replace(erasure, known={**erasure.known, kind: tuple(all_names)}) if all_names else erasure


def hand_to_lake(erasure: Erasure, salt: str) -> Erasure:
    """Return an erasure whose online stores are done, for the next night. It keeps the lake's names alone."""
    for_lake = {kind: erasure.known[kind] for kind in LAKE_NAMES if kind in erasure.known}
    return replace(erasure, salt=salt, waits_until="", found_now=0, known=for_lake)


def after_pass(  # noqa: PLR0913, PLR0917 (what is known of a pass)
    erasure: Erasure,
    run_id: str,
    found: Mapping[str, int],
    settles: timedelta,
    began: datetime,
    left: int = 0,
) -> Erasure:
    """Return an erasure after a night's pass over lake and warehouse. Noting it again changes nothing.

    found: store -> how many items the pass found. settles: after so long, nothing from before the erasure is
    on its way to the lake, so a pass that began earlier is not the last one. left: how many items it left to
    a later pass, which then counts them.
    """
    if erasure.last_run == run_id:
        return erasure
    settled = unstamp(erasure.started_at) + settles
    passes = erasure.passes + 1 if began >= settled else min(erasure.passes + 1, PASSES_MIN - 1)
    later = "" if began >= settled else stamp(settled)
    return replace(
        erasure,
        passes=passes,
        last_run=run_id,
        found=_sums(erasure, found),
        found_now=sum(found.values()) + left,
        waits_until=later,
    )


def after_part(erasure: Erasure, run_id: str, found: Mapping[str, int]) -> Erasure:
    """Return an erasure after a night that has not searched everything, and so is no pass.

    Noting it again changes nothing. found: as for after_pass.
    """
    if erasure.last_run == run_id or not found:
        return erasure
    return replace(erasure, last_run=run_id, found=_sums(erasure, found))


def _sums(erasure: Erasure, found: Mapping[str, int]) -> dict[str, int]:
    sums = {store: erasure.found.get(store, 0) + number for store, number in found.items()}
    return {**erasure.found, **sums}


def lead_of(erasure: Erasure) -> Person:
    """Return the lead of an erasure, as far as it is known."""
    names = erasure.known
    pairs = zip(names.get("channels", ()), names.get("names", ()), strict=True)
    return Person(
        erasure.digest,
        organization=erasure.organization,
        leads=tuple(dict.fromkeys([*filter(None, [erasure.subject]), *names.get("leads", ())])),
        identities=tuple(pairs),
    )


def with_lead(erasure: Erasure, person: Person) -> Erasure:
    """Return an erasure that knows a lead with these leaves and identities."""
    channels, names = (tuple(identity[part] for identity in person.identities) for part in (0, 1))
    known = {**erasure.known, LEADS: person.leads, "channels": channels, "names": names}
    return replace(erasure, organization=person.organization, known=known)


ALGORITHM = "HMAC-SHA256"
KEY_ID_CHARACTERS = 16
SIGNATURE_FIELDS = {"algorithm", "key_id", "value"}


def certificate_of(erasure: Erasure, now: datetime) -> dict[str, Any]:
    """Return what the certificate says, unsigned: what each store had, and that nothing was left."""
    return {
        "certificate": "streakline erasure",
        "format": 2,
        "erasure_id": erasure.erasure_id,
        "kind": erasure.kind.value,
        "subject_digest": erasure.digest,
        "started_at": erasure.started_at,
        "finished_at": stamp(now),
        "sweeps": erasure.sweep,
        "nightly_passes": erasure.passes,
        "stores": [
            {
                "store": store.name,
                "holds": store.holds,
                "removed": erasure.found.get(store.name, 0),
                "left": 0,
                "fate": store.fate.value,
            }
            for store in (*erasure.online_plan, *nightly_plan_of(erasure.kind))
        ],
        "other_stores": excluded_stores(erasure.kind, erasure.lacking),
    }


def key_id(key: str) -> str:
    """Return what distinguishes keys without revealing them."""
    return hashlib.sha256(f"certificate\x1f{key}".encode()).hexdigest()[:KEY_ID_CHARACTERS]


def sign_certificate(certificate: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return a certificate with its signature. It must be JSON without floats."""
    body = {name: each for name, each in certificate.items() if name != "signature"}
    signature = {"algorithm": ALGORITHM, "key_id": key_id(key), "value": _mac(body, key)}
    return {**body, "signature": signature}


def problem_of(certificate: Any, key: str) -> str | None:
    """Return why a certificate is not genuine; None if it is."""
    if not isinstance(certificate, dict) or not isinstance(certificate.get("signature"), dict):
        return "it has no signature"
    signature = certificate["signature"]
    if problem := _signature_problem(signature, key):
        return problem
    body = {name: each for name, each in certificate.items() if name != "signature"}
    try:
        right = _mac(body, key)
    except (TypeError, ValueError, RecursionError):
        return "it is no plain JSON"
    if not hmac.compare_digest(right.encode(), str(signature.get("value")).encode(errors="replace")):
        return "it was changed after it was signed"
    return None


def _signature_problem(signature: Mapping[str, Any], key: str) -> str | None:
    if unsigned := sorted(signature.keys() - SIGNATURE_FIELDS):
        return f"its signature has fields that nobody signed: {', '.join(unsigned)}"
    if signature.get("algorithm") != ALGORITHM:
        return f"its signature is not by {ALGORITHM}"
    return None if signature.get("key_id") == key_id(key) else "it was signed with another key"


def _mac(body: Mapping[str, Any], key: str) -> str:
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hmac.new(key.encode(), f"certificate\x1f{text}".encode(), hashlib.sha256).hexdigest()
