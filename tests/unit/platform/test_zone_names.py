"""Zones as devices spell them are the zones that are meant, or none."""

from datetime import UTC, datetime
from zoneinfo import available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rules.days import UnknownZone, sent_zone
from rules.zone_names import LENGTH_MAX, NO_ZONES, find_zone


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Europe/Berlin", "Europe/Berlin"),
        ("+05:30", "+05:30"),
        ("-00:00", "-00:00"),
        ("GMT+03:00", "+03:00"),
        ("GMT+3", "+03:00"),
        ("gmt-0330", "-03:30"),
        ("UTC+2", "+02:00"),
        ("UTC +5:45", "+05:45"),
        ("UT-11", "-11:00"),
        ("UTC\u22123", "-03:00"),
        ("GMT+03:00:00", "+03:00"),
        ("+5", "+05:00"),
        ("+0530", "+05:30"),
        ("-03", "-03:00"),
        ("Etc/GMT-3", "Etc/GMT-3"),
        ("etc/gmt+3", "Etc/GMT+3"),
        ("GMT+0", "GMT+0"),
        ("Z", "UTC"),
        ("utc", "UTC"),
        ("posix/Europe/Berlin", "Europe/Berlin"),
        ("right/Europe/Berlin", "Europe/Berlin"),
        (":Europe/Berlin", "Europe/Berlin"),
        ("/usr/share/zoneinfo/posix/Asia/Tokyo", "Asia/Tokyo"),
        ("europe/berlin", "Europe/Berlin"),
        ("AMERICA/ARGENTINA/BUENOS_AIRES", "America/Argentina/Buenos_Aires"),
        ("America/New York", "America/New_York"),
        (" Europe/Berlin\n", "Europe/Berlin"),
        ("Asia/Calcutta", "Asia/Calcutta"),
        ("US/Pacific", "US/Pacific"),
        ("GB", "GB"),
        ("SystemV/PST8", "-08:00"),
        ("SystemV/HST10", "-10:00"),
        ("SystemV/PST8PDT", "PST8PDT"),
        ("posix/SystemV/EST5", "-05:00"),
        ("AST4", "-04:00"),
        ("UTC0", "-00:00"),
        ("UTC + 5", "+05:00"),
        ("GMT \u20133", "-03:00"),
    ],
)
def test_a_zone_is_known_as_devices_spell_it(text: str, name: str) -> None:
    assert find_zone(text) == name
    assert sent_zone(name)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "SystemV/AST4ADT",
            "W. Europe Standard Time",
            "CET-1CEST",
            "PST",
            "EST-5",
            "JST-9",
            "GMT3",
            "PST13",
            "Etc/Unknown",
            "Mars/Olympus",
        ),
        *("localtime", "posixrules", "Factory", "posix/localtime", "right/", "Europe", "", " "),
        *("+15:00", "GMT+15", "UTC-13", "+00:60", "GMT+25", "GMT+5.5", "+\u0663", "+1:2:3"),
        *(
            "../etc/passwd",
            "/etc/passwd",
            "/usr/share/zoneinfo/../../../etc/passwd",
            "Europe/Berlin\x00",
            "\ud83d",
        ),
        *("x" * (LENGTH_MAX + 1), "/" * 100_000),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_what_names_no_zone_is_unknown(text: str) -> None:
    with pytest.raises(UnknownZone) as unknown:
        find_zone(text)
    assert len(str(unknown.value)) < 2 * LENGTH_MAX


def test_each_name_of_the_tz_database_is_itself_in_small_letters_too() -> None:
    for name in sorted(available_timezones() - {"Factory", "localtime"}):
        assert {find_zone(text) for text in (name, name.lower(), f"right/{name}")} == {name}


@given(st.text(max_size=20) | st.from_regex(r"(GMT|UTC|Etc/GMT)?[+-][0-9:]{1,6}", fullmatch=True))
def test_any_text_is_a_zone_where_people_live_or_none(text: str) -> None:
    try:
        name = find_zone(text)
    except UnknownZone:
        return
    assert find_zone(name) == name
    assert name.lower() not in NO_ZONES
    assert datetime(2026, 6, 1, tzinfo=UTC).astimezone(sent_zone(name)).utcoffset() is not None
