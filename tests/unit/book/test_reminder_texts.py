"""A book's reminders: who reads which text, and which sections are refused."""

from datetime import time
from typing import Any

import pytest

from adapters.book_store import shipped_document
from ingest.book_document import book_of_document
from rules.book.document import BookRefused
from rules.book.reminders import ReminderRules, ReminderText

EN, FR, BR = (ReminderText(each, f"{each} {{days}}") for each in ("Tonight", "Ce soir", "Hoje"))
RULES = ReminderRules(time(20), {"en": EN, "fr": FR, "pt-BR": BR})


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("", EN),
        ("en", EN),
        ("en-GB", EN),
        ("fr", FR),
        ("FR-ca", FR),
        ("pt-BR", BR),
        ("pt-br-x-slang", BR),
        ("pt", BR),
        ("pt-PT", BR),
        ("de", EN),
        ("frr", EN),  # North Frisian is no French
    ],
)
def test_who_reads_which_text(language: str, text: ReminderText) -> None:
    assert RULES.text_in(language) is text


def test_a_streak_of_one_day_may_have_words_of_its_own() -> None:
    text = ReminderText("Tonight", "Your {days} days, all {days}", "Your day")
    assert [text.body(length) for length in (1, 2)] == ["Your day", "Your 2 days, all 2"]
    assert EN.body(1) == "Tonight 1"


def section(**more: Any) -> dict[str, Any]:
    return {"at": "20:00", "texts": {"en": {"title": "Tonight", "text": "{days} days"}}} | more


def test_a_book_may_have_none_and_the_shipped_one_speaks_english_at_eight() -> None:
    document = dict(shipped_document())
    shipped = book_of_document(document).reminders
    assert shipped is not None
    assert (shipped.at, set(shipped.texts), shipped.language) == (time(20), {"en"}, "en")
    del document["reminders"]
    assert book_of_document(document).reminders is None


@pytest.mark.parametrize(
    ("reminders", "fault"),
    [
        (section(at="8pm"), "reminders.at"),
        (section(at="23:31"), "reminders.at"),
        (section(texts={}), "reminders.texts"),
        (section(language="fr"), "reminders.language is fr, which texts lacks"),
        (section(texts={"english": {"title": "a", "text": "b"}}), "reminders.texts"),
        (
            section(texts={"en": {"title": "a", "text": "b"}, "EN": {"title": "a", "text": "b"}}),
            "reminders.texts.EN",
        ),
        (section(texts={"en": {"title": " ", "text": "b"}}), "reminders.texts.en.title is blank"),
        (
            section(texts={"en": {"title": "a", "text": "b\u202e"}}),
            "reminders.texts.en.text has the character",
        ),
        (section(texts={"en": {"title": "a", "text": "{name}"}}), "reminders.texts.en.text has {name}"),
        (section(texts={"en": {"title": "a", "text": "{days"}}), "reminders.texts.en.text has {"),
        (section(texts={"en": {"title": "{days}", "text": "b"}}), "reminders.texts.en.title has {days}"),
    ],
)
def test_sections_that_are_refused(reminders: dict[str, Any], fault: str) -> None:
    with pytest.raises(BookRefused) as refused:
        book_of_document(shipped_document() | {"reminders": reminders})
    assert any(str(each).startswith(fault) for each in refused.value.faults), refused.value.faults
