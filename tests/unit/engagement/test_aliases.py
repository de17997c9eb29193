"""People's names are aliases, whatever their script; what deceives a reader is refused in words."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.engagement.aliases import LENGTH_MAX, alias_of

NAMES = (
    *(
        "José",
        "Анна",
        "小明",
        "李",
        "O'Neil",
        "O’Neil",
        "Bo",
        "Jean-Luc",
        "Nguyễn",
        "Þór",
        "Dvořák",
        "Αλέξης",
        "علی",
    ),
    *(
        "שרה",
        "สมชาย",
        "स्नेहा",
        "さくら 桜",
        "김민수",
        "김",
        "小明 Li",
        "J. R. Smith",
        "Joe Root",
        "Badminton",
        "Ann_7",
    ),
    *(
        "J.R.",
        "Sammy Davis Jr.",
        "Mr. T.",
        "Ivana K.",
        "'t Hooft",
        "ג׳ורג׳",
        "O‘Brien",
        "Jean‑Luc",
        "Ann Lee 7",
        "Modest",
    ),
    *("Müller-Lüdenscheidt", "Núria Gel·la", "Ann of Oslo", "Olga 3", "Maria do Céu"),
)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_an_alias(name: str) -> None:
    assert alias_of(name) == name


def test_an_alias_has_one_spelling_and_its_bound_is_counted_in_it() -> None:
    assert alias_of(unicodedata.normalize("NFD", "José")) == "José"
    assert alias_of(unicodedata.normalize("NFD", "é" * LENGTH_MAX)) == "é" * LENGTH_MAX
    with pytest.raises(ValueError, match=f"has {LENGTH_MAX + 1} characters: it must have 1 to {LENGTH_MAX}"):
        alias_of("x" * (LENGTH_MAX + 1))


@pytest.mark.parametrize(
    ("alias", "reason"),
    [
        ("", "has 0 characters"),
        ("a", "is one letter"),
        ("An\u200bna", "ZERO WIDTH SPACE, which nobody sees"),
        ("An\u200dna", "ZERO WIDTH JOINER, which nobody sees"),
        ("An\u00adna", "SOFT HYPHEN, which nobody sees"),
        ("An\ufe0fna", "VARIATION SELECTOR-16, which nobody sees"),
        ("\u3164\u3164", "HANGUL FILLER, which nobody sees"),
        ("Ann\u00a0Lee", "NO-BREAK SPACE, which nobody sees"),
        ("Ann\nLee", "U\\+000A, which nobody sees"),
        ("\u202eannA", "RIGHT-TO-LEFT OVERRIDE, which nobody sees"),
        ("Ann \u05d0\u05d1", "are read from the right"),
        ("Аnna", "mixes letters of Cyrillic and Latin"),
        ("Ωmega", "mixes letters of Greek and Latin"),
        ("Ann👑", "CROWN"),
        ("<b>x</b>", "LESS-THAN SIGN"),
        ("Ann!", "EXCLAMATION MARK"),
        (" Ann", "must begin with a letter"),
        ("Ann-", "end with one"),
        ("Ann..", "end with one"),
        ("''Ann", "must begin with a letter"),
        ("'", "must begin with a letter"),
        ("A...n", "more than two signs"),
        ("\u0301Ann", "must begin with a letter"),
        ("a\u0300\u0301\u0302\u0303\u0304b", "more than 3 marks"),
        *(
            (each, "is two words and a number")
            for each in ("Swift Heron 42", "swift-heron.7", "Swíft Heron 42", "Red Fox 12", "Swift Ann 7")
        ),
    ],
)
def test_what_deceives_a_reader_is_refused_in_words(alias: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        alias_of(alias)


OWN_NAMES = (
    *(
        "admin",
        "Admin",
        "ADMIN",
        "ɑdmin",
        "Ádmin",
        "adm1n",
        "a.d.m.i.n",
        "ᴀᴅᴍɪɴ",
        "𝐚𝐝𝐦𝐢𝐧",
        "ａｄｍｉｎ",
        "adrnin",
        "admın",
    ),
    *("Streakline", "streak-line", "StreakIine", "Ｓｔｒｅａｋｌｉｎｅ", "Streakline Team", "the Streakline"),
    *(
        "admin2",
        "Admins 7",
        "Moderators",
        "the operators",
        "root",
        "Staff",
        "MOD",
        "owner",
        "Help Desk",
        "SysAdmin 1",
    ),
    *("Support Team", "Official Ann", "Moderator", "Ann Admin", "ѕуѕтем"),
)


@pytest.mark.parametrize("alias", OWN_NAMES)
def test_nobody_has_the_name_of_the_service_or_of_those_who_look_after_it(alias: str) -> None:
    with pytest.raises(ValueError, match="is a name of the service"):
        alias_of(alias)


@given(st.text(max_size=40))
def test_any_text_is_an_alias_of_its_own_or_refused(text: str) -> None:
    try:
        alias = alias_of(text)
    except ValueError as error:
        assert str(error)
    else:
        assert alias_of(alias) == alias == unicodedata.normalize("NFC", text)
