"""Ids that identify nobody, though they have the right shape: what programs write where there is no id."""

import re

_WORDS = """
null nil none nan nat undefined unknown n/a na <na> <null> <none> (null) (none) true false
wahr falsch vrai faux inf -inf infinity -infinity guest anonymous test
#n/a #name? #ref! #value! #num! #div/0! #null! {} []
"""
WORDS = frozenset({*_WORDS.split(), "[object object]"})
ZEROS = re.compile(r"[0-]+")


def is_worthless_id(text: str) -> bool:
    """Return whether an id identifies nobody, such as `undefined`, NULL, [object Object], or zeros alone."""
    return text.lower() in WORDS or ZEROS.fullmatch(text) is not None
