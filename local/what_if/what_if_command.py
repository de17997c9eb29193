"""`streakline rules what-if`: asks the lake what another book would have led to."""

import json
from datetime import UTC, datetime, time
from pathlib import Path

import click
import pyarrow.csv as pa_csv

from adapters.platform.objects import Objects
from analytics.what_if.figures import USERS, WhatIfAnswer, WhatIfQuestion
from analytics.what_if.summary import summary
from analytics.what_if.what_if import what_if
from local.analyst.output import as_cells
from local.command import DAY, FILE_OUT, Reader, command, option
from local.rules_command import check
from local.stack import Stack
from local.stores import lake_of
from local.what_if.lines import lines
from local.what_if.page import page
from rules.book.document import read_book

IN_FORCE = "in-force"


def _midnight(text: str) -> datetime:
    return datetime.combine(DAY.convert(text, None, None), time(), UTC)


@command("rules what-if book.yaml --page what-if.html", "rules what-if in-force")
@click.argument("book")
@option(
    "--from",
    "since",
    type=Reader("day", _midnight),
    help="from when it is in force (UTC)",
    show_default="ever",
)
@option("--to", "until", type=Reader("day", _midnight), help="until when it is", show_default="now")
@option("--page", "html", type=FILE_OUT, help="write a page of plots: one HTML file")
@option("--users", "users_file", type=FILE_OUT, help="write each user's figures, before and after: CSV")
def what_if_command(
    *,
    stack: Stack,
    book: str,
    since: datetime | None,
    until: datetime | None,
    html: Path | None,
    users_file: Path | None,
    as_json: bool,
) -> None:
    """Ask the lake what a book would have led to. It writes nothing to it.

    BOOK is a file, as `rules check` takes it; or `in-force`: the versions that were, which must change
    nothing.
    """
    lake = lake_of(stack)
    name, answer = ask(lake, book, datetime.now(UTC), since, until)
    figures = summary(answer, name)
    if html:
        html.write_text(page(figures), encoding="utf-8")
    if users_file:
        pa_csv.write_csv(as_cells(answer.users.select(USERS.names[:-1])), users_file)
    print(json.dumps(figures, indent=2) if as_json else "\n".join(lines(figures)))


def ask(
    lake: Objects, book: str, now: datetime, since: datetime | None = None, until: datetime | None = None
) -> tuple[str, WhatIfAnswer]:
    """Return the book's name and the answer; raises RuntimeError with a line for each fault of the book."""
    if since and until and since >= until:
        raise RuntimeError("--from must be before --to")
    if book == IN_FORCE:
        if since or until:
            raise RuntimeError(f"{IN_FORCE} has no span: it is the versions as they were")
        return "the book as it was", what_if(lake, WhatIfQuestion(None, now))
    file = check(Path(book))
    question = WhatIfQuestion(read_book(file.document), now, since, until)
    return file.path.name, what_if(lake, question)
