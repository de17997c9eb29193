"""How a user is on the boards of a period: in which groups, or on none (docs/rules.md, rule 25).

Each change has its instant. So a final standing follows from what was set when the period was final, however
late it is counted.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import zip_longest
from math import inf
from typing import Any

HIDDEN = "hidden"  # the setting of a user who has left the boards; no group has this name
YES = "yes"
GROUPS_MAX = 5  # attributes of a user
VALUE = "^[^\x00-\x1f\x7f;]{1,64}$"  # of an attribute; a semicolon parts them in the lake
# A change that another one has replaced is kept for so long: until no closing may ask for it.
REPLACED_KEPT = timedelta(days=30)
CHANGES_MAX = 20  # of one user that are kept: with more, nothing but leaving the boards is possible


@dataclass(frozen=True, slots=True, order=True)
class BoardSetting:
    """One change."""

    since: int  # epoch seconds
    name: str  # of an attribute, or HIDDEN
    value: str  # "": none

    @property
    def text(self) -> str:
        """The change as it is stored: `1764504000 class=4b`."""
        return f"{self.since} {self.name}={self.value}"

    @staticmethod
    def of(text: str) -> "BoardSetting":
        """Read what `text` wrote; raises ValueError for another text."""
        since, _, setting = text.partition(" ")
        name, is_there, value = setting.partition("=")
        if not is_there:
            raise ValueError(f"no setting of boards: {text!r}")
        return BoardSetting(int(since), name, value)


BoardSettings = tuple[BoardSetting, ...]  # by instant


def board_settings_of(texts: Any) -> BoardSettings:
    """Read the settings of a profile; raises ValueError for damaged ones. texts: as stored; None for none."""
    try:
        return tuple(map(BoardSetting.of, texts or ()))
    except (AttributeError, TypeError):
        raise ValueError(f"no settings of boards: {type(texts).__name__}") from None


def settings_at(settings: Iterable[BoardSetting], at: datetime) -> dict[str, str]:
    """Return what was set before an instant, by name: groups, and HIDDEN."""
    found = {each.name: each.value for each in settings if each.since < at.timestamp()}
    return {name: value for name, value in found.items() if value}


def is_hidden(settings: Iterable[BoardSetting], at: datetime | None = None) -> bool:
    """Whether a user had left the boards before an instant; None: after all changes."""
    until = at.timestamp() if at else inf
    values = [each.value for each in settings if each.name == HIDDEN and each.since < until]
    return bool(values and values[-1])


def groups_of(settings: Iterable[BoardSetting]) -> dict[str, str]:
    """Return a user's groups after all changes: attributes with their values."""
    found = {each.name: each.value for each in settings if each.name != HIDDEN}
    return {name: value for name, value in sorted(found.items()) if value}


def with_settings(settings: BoardSettings, values: Mapping[str, str], now: datetime) -> BoardSettings:
    """Return settings with new values of some names; "" takes a name out. What is so already stays as it is.

    Changes that others have replaced long ago are left out.
    """
    present = {each.name: each.value for each in settings}
    # A clock that is behind puts no change before one that was there.
    since = max([int(now.timestamp()), *(each.since for each in settings)])
    new = [
        BoardSetting(since, name, value)
        for name, value in sorted(values.items())
        if present.get(name, "") != value
    ]
    if not new:
        return settings
    by_name: dict[str, list[BoardSetting]] = {}
    for each in (*settings, *new):
        changes = by_name.setdefault(each.name, [])
        if changes and changes[-1].since == each.since:  # of one second, the last counts
            changes.pop()
        changes.append(each)
    kept_since = (now - REPLACED_KEPT).timestamp()
    kept = [
        each
        for changes in by_name.values()
        for each, following in zip_longest(changes, changes[1:])
        if (following.since > kept_since if following else each.value or each.since > kept_since)
    ]
    return tuple(sorted(kept, key=lambda each: each.since))
