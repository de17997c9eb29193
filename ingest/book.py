"""Everything under /v1/rules: the book in force, its versions, and publishing another one.

The command line publishes by the same functions. Whatever is wrong with a document is reported with its place
and a reason.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cache, partial
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock, settings
from adapters.book import BookStore, Publication, PublicationConflict
from adapters.platform.aws import client
from adapters.platform.fence import fence_writer
from adapters.settings.engagement import RulesApiSettings
from ingest.book_document import book_of_document
from ingest.web.api import Api
from ingest.web.caller import ApiError, Caller, invalid_field, invalid_fields
from ingest.web.http import json_response
from ingest.web.json_schema import ANY, INSTANT, TEXT, Schema, closed_object, flag, list_of, text, whole
from ingest.web.paging import instant_in, instant_of
from ingest.web.routes import in_query
from rules.book.book import Version
from rules.book.document import BookRefused, Fault
from rules.book.succession import check_succession
from rules.days import stamp
from rules.json_values import DoubledKey, unique_keys

NOTE_MAX = 500
NOW = "now"
_VERSION_FIELDS: dict[str, Schema] = {
    "version": whole("", 1),
    "effective_at": INSTANT,
    "published_at": INSTANT,
    "author?": text("admins alone"),
    "note": TEXT,
}
VERSION = closed_object(_VERSION_FIELDS)
RULES = closed_object({**_VERSION_FIELDS, "book": {"$ref": "#/components/schemas/Book"}})
VERSIONS = closed_object({"versions": list_of(VERSION)})
PUBLICATION = closed_object(
    {
        # What is wrong with a book is reported in full below, not by its first fault alone.
        "book": ANY | {"description": "as GET /v1/rules shows it: components.schemas.Book"},
        "effective?": text(
            "`now`, as if left out, or an instant with its zone: from when it is in force", maxLength=40
        ),
        "note?": text("why, for those who come later", maxLength=NOTE_MAX),
        "rerate?": flag("effective may be past: `streakline rules rerate` judges anew what came since"),
        "dry_run?": flag("only say whether it could be published, and from when"),
    }
)


@dataclass(frozen=True, slots=True)
class Proposal:
    """A document that is to be in force from an instant on."""

    document: Any
    effective_at: datetime | None  # None: now
    author: str
    note: str = ""
    # Whether it may take effect in the past. What happened since then is judged anew by `streakline rules
    # rerate`.
    rerate: bool = False


def publish(store: BookStore, proposal: Proposal, now: datetime) -> Version:
    """Publish a version. Raises BookRefused, and PublicationConflict where somebody else was faster."""
    effective_at = check(store, proposal, now)
    note = proposal.note[:NOTE_MAX]  # a note of the command line may be longer; the API refuses that
    return store.publish(Publication(proposal.document, effective_at, now, proposal.author, note))


def check(store: BookStore, proposal: Proposal, now: datetime) -> datetime:
    """Return from when a version would be in force, were it published now. Raises BookRefused.

    What is judged stays judged, so a version takes effect in the past only where that is asked for.
    """
    if proposal.effective_at and proposal.effective_at < now and not proposal.rerate:
        reason = (
            f"is in the past: {proposal.effective_at.isoformat()}. What happened until now has been judged:"
            " only with rerate may it be judged anew"
        )
        raise BookRefused([Fault(("effective",), reason)])
    book, books = book_of_document(proposal.document), store.look()
    # The clock of whoever published last may be ahead. Then this version takes effect at that publication, so
    # that it is not in force before the version that it follows.
    effective_at = proposal.effective_at or max(now, *(version.published_at for version in books.versions))
    check_succession(book, books, effective_at, now)
    return effective_at


app = Api("RulesApi")
logger, handler = app.logger, app.handler


@cache
def _parts() -> BookStore:
    return BookStore(
        fence_writer(client("dynamodb")), settings.read_settings(RulesApiSettings).rule_books_table
    )


def version_view(version: Version, *, is_admin: bool) -> dict[str, Any]:
    """Return what is shown of a version beside its document. Who published it is for admins to know."""
    view = {
        "version": version.number,
        "effective_at": stamp(version.effective_at),
        "published_at": stamp(version.published_at),
        "note": version.note,
    }
    return view | {"author": version.author} if is_admin else view


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
    view = version_view(version, is_admin=caller.is_admin)
    return {**view, "book": store.document(version.number)}


@app.route("GET /v1/rules/versions", answer=VERSIONS)
def get_rule_versions() -> dict[str, Any]:
    """All versions, the newest first (admins)."""
    app.admin()
    versions = [version_view(version, is_admin=True) for version in reversed(_parts().look().versions)]
    return {"versions": versions}


@app.route("POST /v1/rules", body=PUBLICATION, status=201, answer=VERSION, may_repeat=True)
def post_rules() -> Response[str]:
    """Publish a version of the book (admins).

    Every function knows it within a minute. An event is judged by the version in force when it occurred, as
    far as it is known when the event arrives. With dry_run the answer is 200, and nothing is published.
    """
    caller, now = app.admin(), clock.now()
    try:
        body = app.body(pairs=unique_keys)
        proposal = _proposal(body, caller)
        if is_dry := body.get("dry_run", False):
            version = _version_to_be(_parts(), proposal, now)
        else:
            version = publish(_parts(), proposal, now)
    except BookRefused as refused:
        raise invalid_fields([(_field(fault), fault.reason) for fault in refused.faults]) from None
    except DoubledKey as doubled:
        raise invalid_field("book", str(doubled)) from None
    except PublicationConflict:
        raise ApiError(
            409, "conflict", "somebody else has just published a version: look at it first"
        ) from None
    if not is_dry:
        logger.info("published", extra={"version": version.number, "author": version.author})
    return json_response(200 if is_dry else 201, version_view(version, is_admin=True))


def _version_to_be(store: BookStore, proposal: Proposal, now: datetime) -> Version:
    """Return the version that publishing would make. Raises BookRefused."""
    effective_at, read = check(store, proposal, now), partial(book_of_document, proposal.document)
    number = store.look().newest.number + 1
    return Version(number, effective_at, read, now, proposal.author, proposal.note)


def _field(fault: Fault) -> str:
    return ".".join(map(str, fault.path)) or "book"


def _proposal(body: Mapping[str, Any], caller: Caller) -> Proposal:
    at = None if body.get("effective", NOW) == NOW else instant_in(body, "effective")
    return Proposal(body["book"], at, caller.user_id, body.get("note", ""), body.get("rerate", False))
