"""Everything under /v1/rules: the book in force, its versions, and publishing another one, for the HTTP door
and for the command line. Whatever is wrong with the document is told by its place and a reason.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

from adapters import clock, settings
from adapters.book import BookStore, Publication, PublicationConflict
from adapters.platform.aws import client
from adapters.platform.fence import fence_writer
from adapters.settings.engagement import RulesApiSettings
from ingest.web.api import Api
from ingest.web.caller import ApiError, Caller, invalid_field, invalid_fields
from ingest.web.json_schema import INSTANT, TEXT, Schema, closed_object, list_of
from ingest.web.paging import instant_in, instant_of
from ingest.web.routes import in_query
from ingest.web.validate import all_problems, first_problem
from rules.book.book import Book, Books, Version
from rules.book.book_schema import BOOK
from rules.book.document import BookRefused, Fault, Path, breaking_changes, faults_of, read_book
from rules.book.rewards import lowered_stocks
from rules.days import stamp
from rules.json_values import DoubledKey, check_strict, unique_keys

# Publishes a book, for the HTTP door and for the command line: whatever is wrong with the document is told by
# its place and a reason.


# Checks a document that somebody wants to publish. Whatever is wrong is told by its place and a reason.


# An item of a table may have 400 KB.
DOCUMENT_BYTES_MAX = 300_000
# Each event of the type is held against it.
CONTRACT_BYTES_MAX = 16_384
MISSING = "is missing"  # as first_problem says it


def book_of_document(document: Any) -> Book:
    """Return the book of a document; raises BookRefused."""
    try:
        check_strict(document)
    except ValueError as error:
        raise BookRefused([Fault((), str(error))]) from None
    if (size := len(json.dumps(document, ensure_ascii=False).encode())) > DOCUMENT_BYTES_MAX:
        raise BookRefused([Fault((), f"has {size} bytes as JSON; {DOCUMENT_BYTES_MAX} are allowed")])
    if problems := all_problems(BOOK, document):
        faults = [
            each for at, why in problems for each in _structural_faults(document, _path_of(document, at), why)
        ]
        raise BookRefused([*dict.fromkeys(faults)])
    if faults := [*_float_faults(document)] or faults_of(document):
        raise BookRefused(faults)
    book = read_book(document)
    _check_contracts(book)
    return book


def _path_of(document: Any, field: str) -> Path:
    """Return the keys and places that a field's name stands for; a key may have dots in it: `read.page`."""
    parts = [] if field == "body" else field.split(".")
    place: list[str | int] = []
    while parts:
        size = 1
        if isinstance(document, dict):
            known = (count for count in range(1, len(parts) + 1) if ".".join(parts[:count]) in document)
            size = next(known, 1)
        key: str | int = int(parts[0]) if isinstance(document, list) else ".".join(parts[:size])
        place, parts = [*place, key], parts[size:]
        is_there = isinstance(document, list) or (isinstance(document, dict) and key in document)
        document = document[key] if is_there else None
    return tuple(place)


def _structural_faults(document: Any, place: Path, reason: str) -> list[Fault]:
    """Return what a schema's problem comes to. What is missing may be there under another name."""
    if reason == MISSING:
        return [Fault(place, reason), *_wrong_keys(document, place[:-1])]
    return [*_wrong_keys(document, place)] or [Fault(place, reason)]


def _wrong_keys(document: Any, place: Path) -> Iterator[Fault]:
    """Yield the keys that may not be at a place, each by itself: a schema tells of their object alone."""
    said, schema = document, BOOK
    for key in place:
        inside = schema.get("properties", {}).get(
            key, schema.get("items", schema.get("additionalProperties"))
        )
        if not isinstance(inside, dict):
            return
        said, schema = said[key], inside
    if not isinstance(said, dict):
        return
    known, pattern = schema.get("properties", {}), schema.get("propertyNames", {}).get("pattern", "")
    for key in said:
        if schema.get("additionalProperties") is False and key not in known:
            yield Fault((*place, key), f"is unknown: there are {', '.join(known)}")
        elif not re.search(pattern.replace("$", r"\Z"), key):
            yield Fault((*place, key), f"is no name: it must match {pattern}")


def _float_faults(value: Any, path: Path = ()) -> Iterator[Fault]:
    """Yield where a document has 5.0 for 5. JSON Schema takes it for whole, and the tables do not."""
    if isinstance(value, float) and value.is_integer():
        yield Fault(path, f"is {value}: write {int(value)}")
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, each in inner:
        yield from _float_faults(each, (*path, name))


def _check_contracts(book: Book) -> None:
    """Raise BookRefused for a contract that no event can be held against."""
    for name, rule in book.event_types.items():
        if (size := len(json.dumps(rule.properties))) > CONTRACT_BYTES_MAX:
            reason = f"has {size} bytes as JSON; {CONTRACT_BYTES_MAX} are allowed"
            raise BookRefused([Fault(("event_types", name, "properties"), reason)])
        try:
            first_problem({"type": "object", **(rule.properties or {})}, {})
        except Exception as error:  # noqa: BLE001 (the library raises what it likes)
            fault = Fault(("event_types", name, "properties"), f"cannot be used: {error}")
            raise BookRefused([fault]) from None


def check_streaks(before: Book, after: Book) -> None:
    """Raise BookRefused for a streak that counts another period than under a version before."""
    faults = [
        Fault(("streaks", name, "per"), f"was {before.streaks[name].per} before: take a new name")
        for name in sorted(before.streaks.keys() & after.streaks.keys())
        if before.streaks[name].per is not after.streaks[name].per
    ]
    if faults:
        raise BookRefused(faults)


def check_senders(before: Book, after: Book) -> None:
    """Raise BookRefused for a contract that refuses what senders may send under the book before."""
    faults = []
    for name in before.event_types.keys() & after.event_types.keys():
        for path, reason in breaking_changes(
            before.event_types[name].properties, after.event_types[name].properties
        ):
            why = f"{reason}: what may be sent before would be refused; a new event type may ask for it"
            faults.append(Fault(("event_types", name, "properties", *path), why))
    if faults:
        raise BookRefused(faults)


def check_stocks(before: Iterable[Book], book: Book, after: Iterable[Book]) -> None:
    """Raise BookRefused for a reward of which there were more before, or will be fewer later."""
    problems = lowered_stocks(
        [each.rewards for each in before], book.rewards, [each.rewards for each in after]
    )
    if faults := [Fault(path, reason) for path, reason in problems]:
        raise BookRefused(faults)


# What a version may change of what has been judged: it takes effect in the past (rule 12).


def check_past(book: Book, books: Books, effective_at: datetime, now: datetime) -> None:
    """Raise BookRefused for a book that takes more than points from what happened since an instant.

    Every type that was known must be there, and keep the streak as it did: nobody's streak is judged anew.
    """
    faults = list(_faults(book, books, effective_at, now))
    if faults:
        raise BookRefused(faults)


def _faults(book: Book, books: Books, effective_at: datetime, now: datetime) -> Iterator[Fault]:
    seen: set[str] = set()
    for version in books.between(effective_at, now):
        for name, rule in version.book.event_types.items():
            if name in seen:
                continue
            path = ("event_types", name)
            if name not in book.event_types:
                seen.add(name)
                yield Fault(path, f"is missing: version {version.number} has judged by it since then")
            elif book.event_types[name].keeps_streak != rule.keeps_streak:
                seen.add(name)
                why = f"differs from version {version.number}: who was told of a streak keeps it"
                yield Fault((*path, "keeps_streak"), why)


NOTE_MAX = 500


@dataclass(frozen=True, slots=True)
class Proposal:
    """A document that is to be in force from an instant on. effective_at: None for now.

    rerate: it may be in the past; what happened since then is judged anew by `streakline rules rerate`.
    """

    document: Any
    effective_at: datetime | None
    author: str
    note: str = ""
    rerate: bool = False


def publish(store: BookStore, proposal: Proposal, now: datetime) -> Version:
    """Publish a version. Raises BookRefused, and PublicationConflict where somebody else was faster.

    What is judged stays judged, so a version takes effect in the past only where that is asked for.
    """
    is_past = bool(proposal.effective_at and proposal.effective_at < now)
    if proposal.effective_at and is_past and not proposal.rerate:
        reason = (
            f"is in the past: {proposal.effective_at.isoformat()}. What happened until now has been judged:"
            " only with rerate may it be judged anew"
        )
        raise BookRefused([Fault(("effective",), reason)])
    book, books = book_of_document(proposal.document), store.look()
    # The clock of whoever published last may be ahead: what comes now is in force after that, and not before.
    effective_at = proposal.effective_at or max(now, *(each.published_at for each in books.versions))
    if is_past:
        check_past(book, books, effective_at, now)
    check_senders(books.at(effective_at).book, book)
    if (following := books.after(effective_at)) is not None:
        check_senders(book, following.book)
    if any(each.stock is not None for each in book.rewards.values()):
        before = (each.book for each in books.versions if each.effective_at <= effective_at)
        check_stocks(before, book, (each.book for each in books.versions if each.effective_at > effective_at))
    for each in books.versions if book.streaks else ():
        check_streaks(each.book, book)
    note = proposal.note[:NOTE_MAX]
    return store.publish(Publication(proposal.document, effective_at, now, proposal.author, note))


# The bodies and answers of /v1/rules, as JSON Schema.


NOW = "now"
PUBLICATION = closed_object(
    {
        # What is wrong with a book is told in full by ingest.book, not by its first fault alone.
        "book": {"type": "object", "description": "as GET /v1/rules shows it: components.schemas.Book"},
        "effective?": {
            "type": "string",
            "maxLength": 40,
            "description": "`now`, as if left out, or an instant with its zone: from when it is in force",
        },
        "note?": {"type": "string", "maxLength": 500, "description": "why, for those who come later"},
        "rerate?": {
            "type": "boolean",
            "description": "may be in the past: `streakline rules rerate` judges anew what came since",
        },
    }
)
_VERSION_FIELDS: dict[str, Schema] = {
    "version": {"type": "integer", "minimum": 1},
    "effective_at": INSTANT,
    "published_at": INSTANT,
    "author?": {"type": "string", "description": "admins alone"},
    "note": TEXT,
}
VERSION = closed_object(_VERSION_FIELDS)
RULES = closed_object({**_VERSION_FIELDS, "book": {"$ref": "#/components/schemas/Book"}})
VERSIONS = closed_object({"versions": list_of(VERSION)})

app = Api("RulesApi")
logger, handler = app.logger, app.handler


@cache
def _parts() -> BookStore:
    return BookStore(
        fence_writer(client("dynamodb")), settings.read_settings(RulesApiSettings).rule_books_table
    )


def version_view(version: Version, *, is_admin: bool) -> dict[str, Any]:
    """Return what is told of a version beside its document. Who published it is for admins to know."""
    told = {
        "version": version.number,
        "effective_at": stamp(version.effective_at),
        "published_at": stamp(version.published_at),
        "note": version.note,
    }
    return told | {"author": version.author} if is_admin else told


@app.route("GET /v1/rules", [in_query("at", INSTANT)], answer=RULES)
def get_rules() -> dict[str, Any]:
    """The book of rules in force.

    Its schema is components.schemas.Book.
    """
    caller, store, now = app.caller(), _parts(), clock.now()
    at = instant_of(app.query, "at") or now
    if at > now and not caller.is_admin:
        raise ApiError(403, "forbidden", "what is planned is for admins to see")
    version = store.look().at(at)
    shown = version_view(version, is_admin=caller.is_admin)
    return {**shown, "book": store.document(version.number)}


@app.route("GET /v1/rules/versions", answer=VERSIONS)
def get_rule_versions() -> dict[str, Any]:
    """All versions, the newest first (admins)."""
    app.admin()
    versions = [version_view(each, is_admin=True) for each in reversed(_parts().look().versions)]
    return {"versions": versions}


@app.route("POST /v1/rules", body=PUBLICATION, status=201, answer=VERSION)
def post_rules() -> dict[str, Any]:
    """Publish a version of the book (admins).

    Every function knows it within a minute. An event is judged by the version in force when it occurred, as
    far as it is known when the event arrives.
    """
    caller, now = app.admin(), clock.now()
    try:
        body = app.body(pairs=unique_keys)
        version = publish(_parts(), _proposal(body, caller), now)
    except BookRefused as refused:
        raise invalid_fields([(_field(each), each.reason) for each in refused.faults]) from None
    except DoubledKey as doubled:
        raise invalid_field("book", str(doubled)) from None
    except PublicationConflict:
        raise ApiError(
            409, "conflict", "somebody else has just published a version: look at it first"
        ) from None
    logger.info("published", extra={"version": version.number, "author": version.author})
    return version_view(version, is_admin=True)


def _field(fault: Fault) -> str:
    return ".".join(map(str, fault.path)) or "book"


def _proposal(body: Mapping[str, Any], caller: Caller) -> Proposal:
    at = None if body.get("effective", NOW) == NOW else instant_in(body, "effective")
    return Proposal(body["book"], at, caller.user_id, body.get("note", ""), body.get("rerate", False))
