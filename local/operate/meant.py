"""Which of several names somebody means who has typed one."""

import difflib
from collections.abc import Mapping


def meant(typed: str, spellings: Mapping[str, str], what: str) -> str:
    """Return the name that a spelling stands for. Case, hyphens and underscores do not matter.

    spellings: spelling -> name. what: a word for the sentence, such as "failure queue". Raises RuntimeError,
    with the names that are near or else with all, if there is no such spelling.
    """
    plain = {_plain(spelling): name for spelling, name in spellings.items()}
    if found := plain.get(_plain(typed)):
        return found
    near = dict.fromkeys(plain[each] for each in difflib.get_close_matches(_plain(typed), plain))
    hint = (
        f"did you mean {' or '.join(near)}?" if near else f"there are {', '.join(sorted({*plain.values()}))}"
    )
    raise RuntimeError(f"there is no {what} {typed}: {hint}")


def _plain(name: str) -> str:
    return "".join(each for each in name.casefold() if each.isalnum())
