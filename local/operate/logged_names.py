"""`streakline who`: which users logs mean by a name."""

from typing import Any

from local.stack import Stack
from rules.privacy.logged import name_in_logs


def who(names: set[str], stack: Stack) -> dict[str, Any]:
    """Return the user id of each name, or None: it is of nobody who has a profile.

    A name does not lead back to its id. So this hashes the ids of all profiles, and reads the whole table.
    """
    found: dict[str, str | None] = dict.fromkeys(sorted(names))
    pages = stack.client("dynamodb").get_paginator("scan")
    for page in pages.paginate(TableName=stack.tables["UserStreaks"], ProjectionExpression="user_id"):
        for each in page["Items"]:
            user = each["user_id"]["S"]
            if (name := name_in_logs(user)) in found:
                found[name] = user
        if None not in found.values():
            break
    return found
