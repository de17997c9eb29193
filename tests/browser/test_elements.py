"""The custom elements on a stranger's page: what they show and say, in any scheme, width and direction."""

from typing import Any

import pytest

from tests.browser.stranger import STYLE, stranger
from tests.browser.test_page import SEEN_IN_NAME, violations

pytestmark = pytest.mark.xdist_group("browser")
ALL = """<streakline-streak longest></streakline-streak><streakline-calendar></streakline-calendar>
    <streakline-leaderboard></streakline-leaderboard><streakline-friends></streakline-friends>"""
MARKUP, RTL_NAME, EMOJI = '<img src=x onerror="alert(1)">', "\u202eسارة\u202d abc", "👩‍👩‍👧‍👦🏳️‍🌈" * 8
LONG = "x" * 200
STREAK = {"current_streak": 12, "longest_streak": 40, "streak_status": "at_risk"}
DATES = {
    "today": "2026-03-18",
    "first": "2026-02-20",
    "states": {
        **{f"2026-03-{day:02}": "active" for day in (1, 2, 3, 5, 8, 9, 10, 17)},
        "2026-03-04": "covered_by_freeze",
        "2026-03-06": "paused",
        "2026-03-07": "amnesty",
        "2026-02-20": "active",
    },
}
NAMES = ["Ann", MARKUP, RTL_NAME, EMOJI, LONG]
BOARD = {
    "entries": [
        {"rank": place, "alias": alias, "score": 1000 - place, "is_me": place == 2}
        for place, alias in enumerate(NAMES, 1)
    ],
    "own": {"rank": 2, "alias": RTL_NAME},
}


def friend(
    alias: str | None, streak: int, *, you: bool, friend: bool, at_risk: bool = False
) -> dict[str, Any]:
    active = {"active_today": you, "friend_active_today": friend, "at_risk": at_risk}
    return {"user_id": f"user-{streak}", "alias": alias, "streak": streak, **active}


FRIENDS = {
    "friends": [
        friend("Bob", 3, you=True, friend=True),
        friend(None, 12, you=True, friend=False, at_risk=True),
        friend(MARKUP, 7, you=False, friend=True, at_risk=True),
        friend(RTL_NAME, 5, you=False, friend=False, at_risk=True),
        friend(LONG, 2, you=True, friend=False),
        friend(EMOJI, 0, you=False, friend=False),
    ]
}


def filled(page: Any) -> None:
    page.give("friends", data=FRIENDS)
    page.give("streak", data=STREAK)
    page.give("calendar", data=DATES)
    page.give("leaderboard", data=BOARD)


def text(page: Any, selector: str) -> str:
    return " ".join(str(page.page.locator(selector).inner_text()).split())


@pytest.mark.parametrize(("scheme", "width"), [("light", 900), ("dark", 320)])
def test_axe_finds_nothing_serious_in_any_state(browser: Any, scheme: str, width: int) -> None:
    size = {"width": width, "height": 900}
    with stranger(browser, color_scheme=scheme, viewport=size, bypass_csp=True) as page:
        page.open(ALL)
        filled(page)
        page.shoot(f"elements-{scheme}-{width}")
        assert violations(page.page, SEEN_IN_NAME) == []
        for name in ("streak", "calendar", "leaderboard", "friends"):
            page.give(name, data=None)
            page.answer(
                name,
                friends="=() => Promise.reject(refusal(503))",
                profile="=() => Promise.reject(refusal(503))",
                leaderboard="=() => Promise.reject(refusal(503))",
            )
        assert page.page.get_by_role("alert").count() == 4
        page.shoot(f"elements-failed-{scheme}-{width}")
        assert violations(page.page) == []
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        page.page.evaluate(
            "document.querySelector('streakline-streak').shadowRoot.append(document.createElement('img'))"
        )
        assert any(each.startswith("image-alt") for each in violations(page.page)), "axe sees into elements"


def test_what_each_says_to_a_screen_reader(browser: Any) -> None:
    with stranger(browser) as page:
        page.open(ALL)
        filled(page)
        said = page.page.locator("main").aria_snapshot()
        assert "paragraph: 12 days in a row" in said
        assert "paragraph: Do something today to keep it." in said
        assert 'grid "March 2026"' in said
        assert 'gridcell "Wednesday 4 March, covered by a freeze"' in said
        assert 'gridcell "Wednesday 18 March, today"' in said
        assert 'gridcell "Monday 16 March, missed"' in said
        assert 'columnheader "Monday"' in said
        assert 'table "Longest streaks"' in said
        own = page.page.locator("streakline-leaderboard [aria-current=true]")
        assert own.count() == 1
        assert own.inner_text().split() == ["2", *MARKUP.split(), "(you)", "998"]
        assert "8 active" in text(page, "streakline-calendar [part=legend]")
        page.give("streak", data=STREAK | {"current_streak": 13})
        status = page.page.locator("streakline-streak [role=status]")
        assert status.text_content() == "13 days in a row", "a change is said, what is there at first is not"


def test_the_calendar_by_keyboard_alone(browser: Any) -> None:
    with stranger(browser) as page:
        page.open("<streakline-calendar></streakline-calendar>")
        page.give("calendar", data=DATES)
        keys = page.page.keyboard

        def at() -> str:
            return str(
                page.page.evaluate(
                    "document.querySelector('streakline-calendar').shadowRoot.activeElement?.dataset.key ?? ''"
                )
            )

        stops = []
        for _ in range(4):
            keys.press("Tab")
            stops.append(at())
        assert stops == ["previous", "next", "2026-03-18", ""], "one stop for all dates"
        keys.press("Shift+Tab")
        walk = [
            *(("ArrowRight", "2026-03-18"), ("ArrowDown", "2026-03-18"), ("ArrowLeft", "2026-03-17")),
            *(("ArrowUp", "2026-03-10"), ("Home", "2026-03-09"), ("End", "2026-03-15")),
            *(("PageUp", "2026-02-15"), ("ArrowRight", "2026-02-16"), ("PageUp", "2026-02-01")),
            *(("PageDown", "2026-03-01"), ("ArrowLeft", "2026-02-28"), ("Shift+PageDown", "2026-03-18")),
        ]
        for key, there in walk:
            keys.press(key)
            page.page.evaluate("document.querySelector('streakline-calendar').ready")
            assert at() == there, key
        assert page.page.locator("streakline-calendar td[tabindex='0']").count() == 1
        keys.press("ArrowLeft")
        keys.press("Enter")
        keys.press("ArrowLeft")
        keys.press("Space")
        dates = [detail for name, detail in page.page.evaluate("told") if name == "streakline-date"]
        assert dates == [
            {"date": "2026-03-17", "state": "active"},
            {"date": "2026-03-16", "state": "missed"},
        ]
        assert page.page.evaluate("scrollY") == 0, "the keys do not scroll the page as well"
        said = page.page.locator("streakline-calendar [role=status]").text_content()
        assert said == "March 2026: 8 active, 3 covered by a freeze, a pause or a rest day, 6 missed"


def test_a_button_that_leads_nowhere_keeps_the_keyboard(browser: Any) -> None:
    with stranger(browser) as page:
        page.open("<streakline-calendar></streakline-calendar>")
        page.give("calendar", data=DATES)
        before = page.page.get_by_role("button", name="Previous month")
        before.press("Enter")
        page.page.get_by_role("grid", name="February 2026").wait_for()
        assert before.get_attribute("aria-disabled") == "true"
        before.press("Enter")
        page.page.get_by_role("grid", name="February 2026").wait_for()
        key = "document.querySelector('streakline-calendar').shadowRoot.activeElement.dataset.key"
        assert page.page.evaluate(key) == "previous"


@pytest.mark.parametrize("lang", ["ar", "fa", "he"])
def test_right_to_left(browser: Any, lang: str) -> None:
    with stranger(browser, viewport={"width": 320, "height": 900}) as page:
        page.open(ALL, lang=lang, direction="rtl")
        filled(page)
        page.shoot(f"elements-rtl-{lang}")
        edge = "([s]) => document.querySelector('streakline-calendar').shadowRoot.querySelector(s).getBoundingClientRect().left"
        assert page.page.evaluate(edge, ["[data-key='2026-03-10']"]) > page.page.evaluate(
            edge, ["[data-key='2026-03-11']"]
        )
        page.page.locator("streakline-calendar [data-key='2026-03-11']").focus()
        page.page.keyboard.press("ArrowLeft")
        focused = "document.querySelector('streakline-calendar').shadowRoot.activeElement.dataset.key"
        assert page.page.evaluate(focused) == "2026-03-18", "left is forward; today is the last"
        page.page.keyboard.press("ArrowRight")
        assert page.page.evaluate(focused) == "2026-03-17"
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("lang", ["en", "de", "ja"])
def test_nothing_is_wider_than_320_pixels(browser: Any, lang: str) -> None:
    with stranger(browser, viewport={"width": 320, "height": 900}) as page:
        page.open(ALL, lang=lang, style=STYLE + "body { margin: 4px }")
        filled(page)
        page.give("streak", data=STREAK | {"current_streak": 9_007_199_254_740_991, "longest_streak": 10_000})
        page.page.evaluate("document.querySelector('streakline-calendar').setAttribute('weeks', '')")
        wide = page.page.evaluate(
            """() => [...document.querySelectorAll('main > *')].flatMap((e) => [...e.shadowRoot?.querySelectorAll('*') ?? []])
            .filter((e) => !e.closest('.unseen') && e.getBoundingClientRect().right > innerWidth).map((e) => e.outerHTML.slice(0, 90))"""
        )
        assert wide == []


@pytest.mark.parametrize(
    ("days", "shown"),
    [(0, "0 days in a row"), (1, "1 day in a row"), (10_000, "10,000 days in a row")],
)
def test_a_streak_by_attributes_alone(browser: Any, days: int, shown: str) -> None:
    with stranger(browser) as page:
        page.open(f'<streakline-streak days="{days}" status="broken"></streakline-streak>')
        assert text(page, "streakline-streak [part=streak]") == shown
        assert text(page, "streakline-streak [part=status]") == "It ended. Today can begin a new one."
        for bad in ("-1", "x", "", "1.5", "1e400"):
            page.page.evaluate(
                "(bad) => { const e = document.querySelector('streakline-streak'); e.setAttribute('days', bad); return e.ready; }",
                bad,
            )
            assert page.page.locator("streakline-streak [part=streak]").count() == 0, bad


def test_names_are_only_text_and_keep_their_direction(browser: Any) -> None:
    with stranger(browser) as page:
        page.open(ALL)
        filled(page)
        assert page.page.locator("streakline-leaderboard img").count() == 0
        assert page.page.locator("streakline-leaderboard bdi").all_text_contents() == NAMES
        footer = page.page.locator("streakline-leaderboard [part=footer]").text_content()
        assert footer == f"You are number 2. Others see you as \u2068{RTL_NAME}\u2069."


def test_a_board_of_the_book_shows_the_rows_around_a_user_and_how_long_it_goes_on(browser: Any) -> None:
    def row(rank: int, alias: str | None, score: int, is_me: bool = False) -> dict[str, Any]:
        return {"rank": rank, "alias": alias, "score": score, "is_me": is_me}

    top = [row(1, "Ann", 90), row(2, None, 80)]
    around = [row(2, None, 80), row(70, "Cid", 12), row(71, "Me", 11, is_me=True), row(72, "Dan", 10)]
    board = {
        "entries": top,
        "around": around,
        "me": {"rank": 71},
        "state": "open",
        "ends_at": "2999-01-01T00:00:00Z",
    }
    with stranger(browser, viewport={"width": 320, "height": 900}) as page:
        page.open(
            '<streakline-leaderboard board="weekly" group="4b" heading="This week"></streakline-leaderboard>'
        )
        page.answer("leaderboard", board=board)
        shown = text(page, "streakline-leaderboard [part=root]")
        assert page.page.locator("streakline-leaderboard tbody tr").count() == 2 + 1 + 3
        assert "This week" in shown and "somebody" in shown
        assert "You are number 71. It ends" in shown
        asked = {call[0]: call[1:] for call in page.page.evaluate("calls")}
        assert asked["board"] == ["weekly", {"group": "4b", "limit": 10}]
        for state, words in (("provisional", "late points may still come"), ("final", "the final result")):
            page.page.evaluate(
                "data => { document.querySelector('streakline-leaderboard').data = data; }",
                {**board, "state": state},
            )
            assert words in text(page, "streakline-leaderboard [part=root]")


@pytest.mark.parametrize("people", [0, 1, 100])
def test_boards_of_any_size(browser: Any, people: int) -> None:
    entries = [
        {"rank": place + 1, "alias": f"P{place}", "score": 5, "is_me": False} for place in range(people)
    ]
    with stranger(browser, viewport={"width": 320, "height": 900}) as page:
        page.open(
            '<streakline-leaderboard board="points" limit="1000" region="europe"></streakline-leaderboard>'
        )
        page.answer(
            "leaderboard",
            leaderboard={"entries": entries, "as_of": "2020-01-01T00:00:00Z"},
            rank={"rank": None},
        )
        assert page.page.locator("streakline-leaderboard tbody tr").count() == people
        shown = text(page, "streakline-leaderboard [part=root]")
        assert "Most points" in shown
        assert ("Nobody is on this board yet." in shown) == (people == 0)
        assert "You are not on this board yet. As of" in shown
        asked = {call[0]: call[1:] for call in page.page.evaluate("calls")}
        assert asked["leaderboard"] == ["points", {"region": "europe", "limit": 100}]
        assert page.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_styles_stay_outside(browser: Any) -> None:
    hostile = """* { display: inline !important; letter-spacing: 2em !important; text-transform: uppercase !important;
        white-space: nowrap !important; visibility: hidden; pointer-events: none; text-indent: -999px; line-height: 0;
        font-size: 3px } b, td, table, .streak, .root { display: none !important; color: red !important }"""
    with stranger(browser, viewport={"width": 400, "height": 900}) as page:
        page.open(ALL, style=hostile)
        filled(page)
        page.shoot("elements-hostile")
        assert page.page.locator("streakline-streak [part=number]").is_visible()
        assert (
            page.page.locator("streakline-streak [part=number]").evaluate("(e) => getComputedStyle(e).color")
            == "rgb(168, 60, 20)"
        )
        assert text(page, "streakline-streak [part=status]") == "Do something today to keep it."
        page.page.locator("streakline-calendar [data-key='2026-03-10']").click()
        assert ["streakline-date", {"date": "2026-03-10", "state": "active"}] in page.page.evaluate("told")


def test_a_page_dresses_them(browser: Any) -> None:
    own = (
        "body { --streakline-accent: rgb(0, 80, 0) } streakline-streak::part(status) { color: rgb(1, 2, 3) }"
    )
    with stranger(browser) as page:
        page.open(ALL, style=own)
        filled(page)
        colour = "(e) => getComputedStyle(e).color"
        assert page.page.locator("streakline-streak [part=number]").evaluate(colour) == "rgb(0, 80, 0)"
        assert page.page.locator("streakline-streak [part=status]").evaluate(colour) == "rgb(1, 2, 3)"


def test_words_numbers_and_dates_of_another_language(browser: Any) -> None:
    labels = '{"streak":{"one":"Tag in Folge","other":"Tage in Folge"},"previous_month":"Voriger Monat"}'
    with stranger(browser) as page:
        page.open(
            f"<streakline-streak days='10000' labels='{labels}'></streakline-streak><streakline-calendar></streakline-calendar>",
            lang="de",
        )
        page.give("calendar", data=DATES, labels={"previous_month": "Voriger Monat", "date_active": "zählt"})
        assert text(page, "streakline-streak [part=streak]") == "10.000 Tage in Folge"
        assert page.page.get_by_role("button", name="Voriger Monat").count() == 1
        assert page.page.get_by_role("gridcell", name="Dienstag, 3. März, zählt", exact=True).count() == 1
        page.page.evaluate("document.querySelector('streakline-streak').setAttribute('labels', '{')")
        assert text(page, "streakline-streak [part=streak]") == "10.000 days in a row"
        assert page.problems == ["streakline: the attribute labels is no JSON"]
        page.problems.clear()
        page.page.evaluate(
            "document.documentElement.lang = 'not a language'; document.querySelector('streakline-streak').labels = null"
        )
        assert text(page, "streakline-streak [part=streak]") == "10,000 days in a row"


def test_friends_have_the_longest_streak_first_and_say_what_today_is(browser: Any) -> None:
    with stranger(browser) as page:
        page.open('<streakline-friends limit="5"></streakline-friends>')
        page.answer("friends", friends=FRIENDS)
        rows = [
            " ".join(row.split())
            for row in page.page.locator("streakline-friends tbody tr").all_inner_texts()
        ]
        assert rows == [
            "user-12 You were active, your friend not yet. 12",
            f"{MARKUP} Your friend was active, you not yet. 7",
            f"{RTL_NAME} Both must still be active. 5",
            "Bob Both were active. 3",
            f"{LONG} Nothing is missing. 2",
        ]
        assert page.page.locator("streakline-friends img").count() == 0
        page.answer("friends", friends={"friends": []})
        assert text(page, "streakline-friends [part=empty]") == "No friends yet."
