"""Ids that identify nobody, though they have the right shape: what programs write where there is no id."""

import re

_WORDS = """
null nil none nan -nan nat undefined unknown n/a na <na> <null> <nil> <none> (null) (none) true false
wahr falsch vrai faux verdadero verdadeiro vero falso -1 user_id userid
inf -inf infinity -infinity guest anonymous test
#n/a #name? #ref! #value! #num! #div/0! #null! {} []
"""
WORDS = frozenset({*_WORDS.split(), "[object object]"})
ZEROS = re.compile(r"[0-]+")
# UUIDs of ones alone (RFC 9562, 5.10), and a template that nobody has filled in: {{user_id}}, ${userId}.
NO_IDS = re.compile(r"f{8}(?:-f{4}){3}-f{12}|\{\{.*\}\}|\$\{.*\}|[{<]{1,2}[a-z_.]+[}>]{1,2}")
# What a program has made of nothing and a prefix: auth0|undefined, users/null.
NOTHING = re.compile(
    r".*[|:/](?:undefined|null)|(?:undefined|null|none|nan)(?:undefined|null|none|nan|[.@|/])+"
)


def is_worthless_id(text: str) -> bool:
    """Return whether an id identifies nobody, such as `undefined`, NULL, [object Object], or zeros alone."""
    lower = text.lower()
    return lower in WORDS or any(each.fullmatch(lower) for each in (ZEROS, NO_IDS, NOTHING))
