"""What `streakline smoke` calls what it makes: users, organizations, agents and keys of a deployment's proof.

The names are one form that nobody else has. So functions may remove what bears one, and the nightly run may
leave it out: after a smoke test the lake knows users of whom the tables know nothing any more.
"""

import re

PREFIX = "smoke-"
PATTERN = r"smoke-[0-9a-f]{12}(-[a-z]+)?"
_NAME = re.compile(PATTERN, re.ASCII)


def smoke_name(number: int) -> str:
    """Return the name of a smoke test, such as smoke-00f3a92b77c1. number: below 2 to the power of 48."""
    return f"{PREFIX}{number:012x}"


def is_smoke(name: str) -> bool:
    """Whether a smoke test made what has this name: `smoke-`, 12 hexadecimal digits, and a word or none."""
    return _NAME.fullmatch(name) is not None
