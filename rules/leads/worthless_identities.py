"""Identities that identify nobody, though they have the right shape: what people in a hurry type."""

import re

from rules.worthless_ids import is_worthless_id

_LOCAL_PARTS = """
test tests tester testing test1 test12 test123 none no nobody noone null nil undefined unknown anonymous n.a
fake foo bar example sample asdf asdfasdf asdfgh qwerty qwertz abc abcd abc123 noemail no-email no_email
nomail no-mail noreply no-reply no_reply donotreply do-not-reply do_not_reply name yourname your-name
your.name user username
"""
# Written on both sides of the @: gmail@gmail.com. Of other words there are people: schmidt@schmidt.example.
_TWICE = "gmail mail email e-mail info hotmail yahoo outlook icloud gmx web"
TWICE = frozenset(_TWICE.split())
TWICE_SHORT = 3
LOCAL_PARTS = frozenset(_LOCAL_PARTS.split())
# The same digit seven times at the end; all digits in order; the numbers of American films (555-01..).
NUMBERS = re.compile(r"\d*(\d)\1{6}|\d{0,3}(0?1234567890?|9876543210?)|1\d{3}55501\d\d")


def is_worthless(channel: str, external_id: str) -> bool:
    """Return whether an identity, in its one spelling, identifies nobody, though it has the right shape.

    external_id: without its scope. Examples, as forms get them from people in a hurry: test@example.com,
    asdf@asdf.com, 1111111111, a cookie `undefined`. The lists are short on purpose: a value that many people
    type without being listed is caught by the cap of claims (rules.leads.identity_plan). People who have a
    domain of their own may be mail@ it, or have their name on both sides: that is an address like any other.
    """
    if channel == "email":
        local, _, domain = external_id.partition("@")
        is_repeated = len(local) > 2 and len(set(local)) == 1
        is_twice = local == domain.partition(".")[0] and (local in TWICE or len(local) <= TWICE_SHORT)
        return local in LOCAL_PARTS or is_repeated or is_twice
    if channel == "phone":
        return NUMBERS.fullmatch(external_id.partition(";")[0]) is not None
    return is_worthless_id(external_id)
