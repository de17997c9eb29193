"""What a book says of reminders: when, and in which words, people hear that their streak ends tonight."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import time
from typing import Any

DAYS_MARK = "{days}"  # in a text: it stands for the streak's length
LANGUAGE = "^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$"  # RFC 5646: en, pt-BR, zh-Hans-CN
LANGUAGE_LENGTH_MAX = 35  # RFC 5646, 4.4.1
LANGUAGE_DEFAULT = "en"
# Reminders go out each quarter of an hour. A later one could miss its date.
CLOCK = "^(([01][0-9]|2[0-2]):[0-5][0-9]|23:([0-2][0-9]|30))$"
CLOCK_WORDS = "00:00 to 23:30"
_MARK = re.compile(r"\{[^{}]*\}|[{}]")


@dataclass(frozen=True, slots=True)
class ReminderText:
    """A reminder in one language."""

    title: str
    text: str
    text_of_one: str = ""  # for a streak of one day; "": as for the others

    def body(self, length: int) -> str:
        """Return the text for a streak of so many days."""
        text = self.text_of_one if length == 1 and self.text_of_one else self.text
        return text.replace(DAYS_MARK, str(length))


@dataclass(frozen=True, slots=True)
class ReminderRules:
    """When people are reminded of a streak that ends tonight, and in which words."""

    at: time  # a wall clock's, in the zone of the user's dates, for all who have not chosen another
    texts: Mapping[str, ReminderText]  # by language
    language: str = LANGUAGE_DEFAULT  # whose text they get whose own language has none

    def text_in(self, language: str) -> ReminderText:
        """Return the text for a language, such as pt-BR. "": unknown.

        It is the language's own, or that of the language without its last parts (RFC 4647, 3.4), or the first
        by name of another country's variety; else the book's default. Example: with texts for en, fr and
        pt-BR, who has pt-PT reads pt-BR, who has fr-CA reads fr, and who has de reads en.
        """
        by_name = {name.lower(): name for name in self.texts}
        wanted = language.lower()
        while wanted and wanted not in by_name:
            wanted = wanted.rpartition("-")[0]
        if not wanted and language:
            primary = language.lower().partition("-")[0]
            wanted = min((name for name in by_name if name.partition("-")[0] == primary), default="")
        return self.texts[by_name[wanted] if wanted else self.language]


def clock(text: str) -> time:
    """Read a wall clock's time HH:MM. Raises ValueError with the reason."""
    hours, colon, minutes = text.partition(":")
    digits = hours + minutes
    if not (colon and len(hours) == len(minutes) == 2 and digits.isascii() and digits.isdigit()):
        raise ValueError(f"{text!r} is no time HH:MM")
    if int(hours) > 23 or int(minutes) > 59:
        raise ValueError(f"{text} is no time of a day")
    return time(int(hours), int(minutes))


def reminder_rules(section: Mapping[str, Any] | None) -> ReminderRules | None:
    """Return what a document's section `reminders` says; None: it has none."""
    if section is None:
        return None
    texts = {name: ReminderText(**text) for name, text in section["texts"].items()}
    return ReminderRules(clock(section["at"]), texts, section.get("language", LANGUAGE_DEFAULT))


def foreign_mark(text: str) -> str | None:
    """Return the first mark of a text that is not `{days}`; None if there is none."""
    return next((mark for mark in _MARK.findall(text) if mark != DAYS_MARK), None)
