"""Everything under /v1/rules: the book in force, its versions, publishing another one, and what-ifs.

The command line publishes by the same functions. Whatever is wrong with a document is reported with its place
and a reason.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from aws_lambda_powertools.event_handler import Response

from adapters import clock
from adapters.book_store import BookStore, Publication, PublicationConflict
from adapters.bootstrap import ClientOf, bootstrap
from adapters.platform.objects import S3Objects
from adapters.what_if_jobs import WhatIfJob, WhatIfJobs, WhatIfOutcome, WhatIfRunning
from ingest.book_document import book_of_document
from ingest.web.api import Allowance, Api, json_response
from ingest.web.caller import ApiError, invalid_field, invalid_fields
from ingest.web.json_schema import (
    ANY,
    INSTANT,
    TEXT,
    Schema,
    closed_object,
    flag,
    list_of,
    one_of,
    text,
    whole,
)
from ingest.web.paging import LAST_DATE, days_in, instant_in, instant_of
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
# What is wrong with a book is reported in full below, not by its first fault alone.
_BOOK: Schema = ANY | {"description": "as GET /v1/rules shows it: components.schemas.Book"}
PUBLICATION = closed_object(
    {
        "book": _BOOK,
        "effective?": text(
            "`now`, as if left out, or an instant with its zone: from when it is in force", maxLength=40
        ),
        "note?": text("why, for those who come later", maxLength=NOTE_MAX),
        "rerate?": flag("effective may be past: `streakline rules rerate` judges anew what came since"),
        "dry_run?": flag("only say whether it could be published, and from when"),
    }
)

JOB_ID = r"^[0-9a-f]{32}$"
QUESTION = closed_object(
    {
        "book": _BOOK,
        "from?": text("the date from which it is in force, by UTC; left out: it always was", maxLength=10),
        "to?": text("the date on which it ends, by UTC; left out: it does not", maxLength=10),
    }
)
WHAT_IF = closed_object(
    {
        "what_if_id": text(pattern=JOB_ID),
        "status": one_of(("running", "finished", "failed")),
        "asked_at": INSTANT,
        "finished_at?": INSTANT,
        "reason?": text("why it failed"),
        "report?": ANY | {"description": "as `streakline rules what-if --json` prints it"},
    }
)


@dataclass(frozen=True, slots=True)
class RulesApiSettings(Allowance):
    """Settings of this function."""

    rule_books_table: str
    lake_bucket: str
    what_if_function: str  # works out what another book would have led to


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


app = Api("RulesApi", {"what_if_id": text(pattern=JOB_ID)})
logger, handler = app.logger, app.handler


@dataclass(frozen=True, slots=True)
class _Parts:
    books: BookStore
    what_ifs: WhatIfJobs
    work_out: Callable[[str], None]  # lets a what-if, by its id, be worked out, without waiting for it


@bootstrap(RulesApiSettings)
def _parts(config: RulesApiSettings, client: ClientOf) -> _Parts:
    def work_out(job_id: str) -> None:
        function, request = config.what_if_function, json.dumps({"job_id": job_id})
        client("lambda").invoke(FunctionName=function, InvocationType="Event", Payload=request)

    jobs = WhatIfJobs(S3Objects(client("s3"), config.lake_bucket))
    return _Parts(BookStore(client("dynamodb"), config.rule_books_table), jobs, work_out)


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

    Its schema is components.schemas.Book. Secret achievements are for admins to see.
    """
    caller, store, now = app.caller(), _parts().books, clock.now()
    at = instant_of(app.query, "at") or now
    if at > now and not caller.is_admin:
        raise ApiError(403, "forbidden", "what is planned is for admins to see")
    version = store.look().at(at)
    view = version_view(version, is_admin=caller.is_admin)
    document = store.document(version.number)
    return {**view, "book": document if caller.is_admin else _without_secrets(document)}


def _without_secrets(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a book's document without its secret achievements."""
    if "achievements" not in document:
        return {**document}
    achievements = document["achievements"].items()
    shown = {name: section for name, section in achievements if not section.get("secret")}
    return {**document, "achievements": shown}


@app.route("GET /v1/rules/versions", answer=VERSIONS)
def get_rule_versions() -> dict[str, Any]:
    """All versions, the newest first (admins)."""
    app.admin()
    versions = [version_view(version, is_admin=True) for version in reversed(_parts().books.look().versions)]
    return {"versions": versions}


@app.route("POST /v1/rules", body=PUBLICATION, status=201, answer=VERSION, may_repeat=True)
def post_rules() -> Response[str]:
    """Publish a version of the book (admins).

    Every function knows it within a minute. An event is judged by the version in force when it occurred, as
    far as it is known when the event arrives. With dry_run the answer is 200, and nothing is published.
    """
    caller, books, now = app.admin(), _parts().books, clock.now()
    try:
        body = app.body(pairs=unique_keys)
        at = None if body.get("effective", NOW) == NOW else instant_in(body, "effective")
        proposal = Proposal(body["book"], at, caller.user_id, body.get("note", ""), body.get("rerate", False))
        if is_dry := body.get("dry_run", False):
            effective_at, number = check(books, proposal, now), books.look().newest.number + 1
            read = partial(book_of_document, proposal.document)
            version = Version(number, effective_at, read, now, proposal.author, proposal.note)
        else:
            version = publish(books, proposal, now)
    except (BookRefused, DoubledKey) as refused:
        raise _refusal(refused) from None
    except PublicationConflict:
        raise ApiError(
            409, "conflict", "somebody else has just published a version: look at it first"
        ) from None
    if not is_dry:
        logger.info("published", extra={"version": version.number, "author": version.author})
    return json_response(200 if is_dry else 201, version_view(version, is_admin=True))


@app.route("POST /v1/rules/what-ifs", body=QUESTION, status=202, answer=WHAT_IF)
def post_what_ifs() -> dict[str, Any]:
    """Ask what another book would have led to (admins).

    The history in the lake is judged by it, user by user, and nothing is published. That takes seconds to
    minutes: GET has the report at its end. The same question is the same what-if, and is worked out anew once
    it is over. Another question has to wait until then: 409.
    """
    app.admin()
    try:
        body = app.body(pairs=unique_keys)
        book_of_document(body["book"])
    except (BookRefused, DoubledKey) as refused:
        raise _refusal(refused) from None
    since, until = days_in(body, LAST_DATE, "from", "to")
    if since and until and since >= until:
        raise invalid_field("to", "must be after from")
    span = [day.isoformat() if day else None for day in (since, until)]
    try:
        parts = _parts()
        outcome = parts.what_ifs.ask(WhatIfJob(body["book"], span, stamp(clock.now())), parts.work_out)
    except WhatIfRunning as other:
        raise ApiError(409, "conflict", str(other)) from None
    logger.info("what-if", extra={"job_id": outcome.job_id})
    return _what_if_view(outcome)


@app.route("GET /v1/rules/what-ifs/{what_if_id}", answer=WHAT_IF)
def get_what_if(what_if_id: str) -> dict[str, Any]:
    """How far a what-if is, and at its end the report, for a week (admins)."""
    app.admin()
    app.check_path("what_if_id", what_if_id)
    outcome = _parts().what_ifs.outcome(what_if_id, clock.now())
    if outcome is None:
        raise ApiError(404, "not_found", "nobody has asked for such a what-if in the last week")
    return _what_if_view(outcome)


def _what_if_view(outcome: WhatIfOutcome) -> dict[str, Any]:
    view: dict[str, Any] = {"what_if_id": outcome.job_id, "asked_at": outcome.asked_at}
    if not outcome.finished_at:
        return view | {"status": "running"}
    ended = view | {"finished_at": outcome.finished_at}
    if outcome.report is None:
        return ended | {"status": "failed", "reason": outcome.reason}
    return ended | {"status": "finished", "report": outcome.report}


def _refusal(refused: BookRefused | DoubledKey) -> ApiError:
    if isinstance(refused, DoubledKey):
        return invalid_field("book", str(refused))
    return invalid_fields(
        [(".".join(map(str, fault.path)) or "book", fault.reason) for fault in refused.faults]
    )
