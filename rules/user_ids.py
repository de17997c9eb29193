"""What may be a user's id: what issuers put into `sub`, and apps into `user_id`.

OpenID Connect lets a `sub` have 255 ASCII characters. Examples: `auth0|5f7c8ec7`, `_3fa9-b/Q+x=`,
`https://issuer.example/users/7`, a UUID, an address.
"""

import re
from urllib.parse import quote

from rules.worthless_ids import is_worthless_id

LENGTH_MAX = 255  # OpenID Connect Core 1.0, section 2
# Names in the lake, and in the table of claims, that are no user's.
ERASED, GONE = "erased/", "gone/"
# All that ASCII prints, without the blank and these five: a path cannot have % and ? for sure, keys of tables
# have a # behind the name, and JSON writes " and \ in two ways. With the parts `.` and `..`
# a proxy may make another path of it.
USER_ID = rf"^(?!{ERASED}|{GONE}|(?:.*/)?\.\.?(?:/|$))[!\$&->@-\[\]-~]+$"
_USER_ID = re.compile(USER_ID, re.ASCII)
HOLDER = "user/"
KEPT = "#kept"  # no user id has a #
# What spreadsheets, data frames and programs make of a long number: 4.91771E+12 (Java: 4.91771E12) stands for
# thousands of numbers, and 17.0, 17.00 and 1,234 are another spelling of one. 1e5 alone may be an id.
ROUNDED = re.compile(
    r"[+-]?\d(?:[.,]\d+[Ee][+-]?|[Ee][+-])\d+(?:\.0+)?|\d+\.0+|\d{1,3}(?:,\d{3})+(?:\.\d+)?", re.ASCII
)


def user_id_problem(user_id: str) -> str:
    """Return why a text is no user's id, in words that follow the field's name; "" if it is one."""
    if not user_id:
        return "is missing"
    if len(user_id) > LENGTH_MAX:
        return f"has {len(user_id)} characters; at most {LENGTH_MAX}"
    if not _USER_ID.fullmatch(user_id):
        return (
            'must be of printable ASCII characters without blanks and " # % ? \\; no part of it may be . or'
            f" .., and it may not begin with {ERASED} or {GONE}"
        )
    return ""


def new_user_problem(user_id: str) -> str:
    """Return why nothing new may be stored of a user id; "" if it may. As user_id_problem, and more.

    An id that a program writes for nothing, or that a spreadsheet has rounded, would make several people one.
    What is stored of such an id can still be read and erased.
    """
    if problem := user_id_problem(user_id):
        return problem
    if is_worthless_id(user_id):
        return f"{user_id} identifies nobody: it is what programs write where there is no id"
    if ROUNDED.fullmatch(user_id):
        return f"{user_id} is what a spreadsheet made of an id: write the id as a text"
    return ""


def path_part(user_id: str) -> str:
    """Return an id as it is written in one part of a path.

    A slash is encoded twice: an HTTP API decodes all but %25 before it looks for the route.
    """
    return quote(user_id, safe="").replace("%2F", "%252F")


def user_holder(user_id: str) -> str:
    """Return the name of a user in a table that has names of other things, too: `lead/...`, `mug/2`.

    Those have one slash, or a prefix that is not `user/`. So an id with a slash stands behind `user/`.
    """
    return HOLDER + user_id if "/" in user_id else user_id


def user_of_holder(holder: str) -> str | None:
    """Return the user that user_holder named; None for the name of another thing."""
    if "/" not in holder:
        return holder
    user_id = holder.removeprefix(HOLDER)
    return user_id if user_id != holder and "/" in user_id else None


def kept_partition(user_id: str) -> str:
    """Return the partition of DailyActivity with a user's items that are no days: `ann#kept`."""
    return f"{user_id}{KEPT}"


def user_of_partition(partition: str) -> str:
    """Return the user of a partition of DailyActivity: of the user's days, or of the other items."""
    return partition.removesuffix(KEPT)
