"""`streakline what-if BOOK`: asks the lake what another book would have led to. It writes nothing to it."""

import argparse
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv

from adapters.platform.objects import Objects, S3Objects
from analytics.what_if.figures import USERS
from analytics.what_if.what_if import WhatIfAnswer, WhatIfQuestion, what_if
from ingest.web.validate import first_problem
from local.analyst.answer import as_cells
from local.book import check
from local.options import IN_FORCE
from local.stack import Stack
from local.what_if.figures import lines, summary
from local.what_if.page import page
from rules.book.document import read_book


def run(arguments: argparse.Namespace, stack: Stack) -> None:
    """Ask, and print the answer."""
    lake = S3Objects(stack.client("s3"), stack.outputs["LakeBucketName"])
    name, found = ask(lake, arguments, datetime.now(UTC))
    told = summary(found, name)
    if arguments.page:
        arguments.page.write_text(page(told), encoding="utf-8")
    if arguments.users:
        pa_csv.write_csv(as_cells(found.users.select(USERS.names[:-1])), arguments.users)
    print(json.dumps(told, indent=2) if arguments.json else "\n".join(lines(told)))


def ask(lake: Objects, arguments: argparse.Namespace, now: datetime) -> tuple[str, WhatIfAnswer]:
    """Return the book's name and the answer; raises RuntimeError with a line for each fault of the book."""
    since, until = arguments.since, arguments.until
    if since and until and since >= until:
        raise RuntimeError("--from must be before --to")
    if arguments.book == IN_FORCE:
        if since or until:
            raise RuntimeError(f"{IN_FORCE} has no span: it is the versions as they were")
        return "the book as it was", what_if(lake, WhatIfQuestion(None, now))
    file = check(Path(arguments.book))
    asked = WhatIfQuestion(read_book(file.document), now, since, until, _refuses)
    return file.path.name, what_if(lake, asked)


def _refuses(contract: Any, properties: Any) -> bool:
    return first_problem({"type": "object", **contract}, properties) is not None
