"""The documentation site, opened from files as `make docs` leaves them, in a browser."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from mkdocs.config import load_config
from playwright.sync_api import expect

from analytics.warehouse.models import models
from infra.api_reference import tag_id
from infra.docs_site import OUTSIDE
from ingest.openapi import document
from tests.browser.conftest import PHONE, WIDE, shoot
from tests.browser.test_docs import FEW_CALLS
from tests.browser.test_page import violations
from tests.support.effort import effort
from tests.support.template import ROOT

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder. It is built strictly: a link that goes nowhere ends the build."""
    made = tmp_path_factory.mktemp("site")
    # Without -q: it keeps warnings from being counted, and then nothing is strict.
    command = [sys.executable, "-m", "mkdocs", "build", "-f", "infra/mkdocs.yml", "-d", str(made)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


@pytest.fixture(params=[WIDE, PHONE], ids=["wide", "phone"])
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of a browser that may ask for files alone; at the end nothing else was asked for."""
    context = browser.new_context(viewport=request.param)
    opened = context.new_page()
    asked: list[str] = []
    opened.on("request", lambda asking: asked.append(asking.url))
    yield opened
    context.close()
    assert [url for url in asked if not url.startswith(("file:", "blob:", "data:"))] == []


def test_every_page_is_there_and_nothing_is_fetched_from_elsewhere(folder: Path) -> None:
    pages = {str(each.relative_to(folder)) for each in folder.rglob("*.html")}
    written = {str(each.relative_to(ROOT / "docs")) for each in (ROOT / "docs").rglob("*.md")}
    wanted = {re.sub(r"(README|index)\.md$", "index.md", each)[:-3] + ".html" for each in written}
    assert wanted | {f"{each[:-3]}.html" for each in OUTSIDE.values()} <= pages
    assert "How a late event" in (folder / "concepts/how-a-late-event-changes-a-streak.html").read_text()
    page = (folder / "index.html").read_text()
    assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://', page) == []


def test_programs_find_each_page_as_markdown(folder: Path) -> None:
    """llms.txt lists them; links within them lead to Markdown that is there."""
    listed = re.findall(r"^- \[(.+)\]\((.+)\)$", (folder / "llms.txt").read_text(), re.MULTILINE)
    paths = {path for _, path in listed}
    assert {"index.md", "tutorial.md", "guides/operator.md", "ARCHITECTURE.md", "models.md"} <= paths
    assert {path: title for title, path in listed}["tutorial.md"].startswith("From nothing")
    for path in paths:
        text = (folder / path).read_text()
        assert text.startswith("# "), path
        for link in re.findall(r"\]\(([^)#\s:]+\.md)", text):
            assert (folder / path).parent.joinpath(link).exists(), (path, link)


def test_pages_that_explain_come_before_pages_that_list(folder: Path) -> None:
    index = json.loads((folder / "search/search_index.json").read_text())["docs"]
    boosts = {each["location"].partition("#")[0]: each.get("boost", 1) for each in index}
    assert boosts["runbook.html"] < boosts["guides/what-if.html"] == 1
    assert boosts["models.html"] < boosts["tutorial.html"] == 1


def test_search_finds_a_word_from_files(folder: Path, page: Any) -> None:
    page.goto((folder / "concepts/how-a-late-event-changes-a-streak.html").as_uri())
    if page.viewport_size == PHONE:
        page.locator("label.md-header__button[for=__search]").click()
    page.get_by_role("textbox", name="Search").press_sequentially("amnesties")
    found = page.locator(".md-search-result__link").first
    found.wait_for(state="visible")
    shoot(page, f"site-search-{page.viewport_size['width']}")
    found.click()
    page.wait_for_url(lambda url: "how-a-late-event" not in url)
    assert "amnest" in page.locator(".md-content").text_content().lower()


SEARCH_WORDS: dict[str, str] = load_config(str(ROOT / "infra/mkdocs.yml")).extra["search_words"]
# What newcomers type, in several words too, and the pages of which the search shows one first
EXPLAINED = {
    word: {page.replace(".md", ".html") for page, words in SEARCH_WORDS.items() if word in words.split()}
    for word in " ".join(SEARCH_WORDS.values()).split()
} | {
    "rate limit": {"guides/python-backend.html"},
    "delete user": {"rules/privacy.html"},
    "late event": {"concepts/how-a-late-event-changes-a-streak.html"},
    "leagues": {"guides/a-league.html", "rules/leagues.html"},
    "freezes": {"rules/streaks.html", "book.html"},
    "errors": {"api.html"},
}


def test_who_searches_for_a_word_finds_the_page_that_explains_it_first(browser: Any, folder: Path) -> None:
    page = browser.new_page(viewport=WIDE)
    page.goto((folder / "figures.html").as_uri())
    box, said = page.get_by_role("textbox", name="Search"), page.locator(".md-search-result__meta")
    box.press_sequentially("x")
    first: dict[str, str] = {}
    for word in EXPLAINED:
        for typed, answer in (("", "Type to start"), (word, "matching document")):
            box.fill(typed)
            box.press("End")  # the search listens for keys
            expect(said).to_contain_text(answer)
        found = page.locator(".md-search-result__link").first.get_attribute("href")
        first[word] = str(found).partition("#")[0].partition("?")[0]
    page.close()
    first = {word: address.removeprefix(f"{folder.as_uri()}/") for word, address in first.items()}
    assert {word: page for word, page in first.items() if page not in EXPLAINED[word]} == {}


def test_search_finds_calls_and_columns(folder: Path) -> None:
    found = {
        each["location"] for each in json.loads((folder / "search/search_index.json").read_text())["docs"]
    }
    assert {"api/events.html#postEvents", "models/marts.html#martsstickiness"} <= found


def test_each_call_is_on_the_page_of_its_tag_and_no_page_is_endless(folder: Path) -> None:
    """The first page of the API lists them all; what they share, errors and schemas, is there alone."""
    calls = {
        operation["operationId"]: tag_id(operation["tags"][0])
        for methods in document()["paths"].values()
        for operation in methods.values()
    }
    pages = {path: (folder / path).read_text() for path in {f"api/{tag}.html" for tag in calls.values()}}
    listed = (folder / "api.html").read_text()
    for name, tag in calls.items():
        assert f'href="api/{tag}.html#{name}"' in listed
        assert [path for path, text in pages.items() if f'id="{name}"' in text] == [f"api/{tag}.html"]
    for path, text in pages.items():
        assert max(map(len, pages.values())) < 3 * len(listed), (
            "a page of calls is no longer than a few screens"
        )
        for target in set(re.findall(r'href="\.\./api\.html#([\w-]+)"', text)):
            assert f'id="{target}"' in listed, (path, target)
        assert not re.findall(r'href="#(?:errors|schema-)', text), "what is common is on another page"


def test_every_model_and_column_has_its_meaning(folder: Path) -> None:
    listed = (folder / "models.html").read_text()
    for name, model in models().items():
        path = f"models/{name.partition('.')[0]}.html"
        assert f'href="{path}#{name.replace(".", "")}"' in listed
        page = unescape(re.sub(r"<[^>]+>", "", (folder / path).read_text()))
        assert {each for each in (name, *model.columns) if each not in page} == set()


@pytest.mark.parametrize(
    ("path", "scheme"),
    [
        ("index.html", "light"),
        ("figures.html", "dark"),
        ("index.html", "dark"),
        ("figures.html", "light"),
        ("api/points-and-rewards.html", "light"),
        ("api.html", "dark"),
    ][: effort(2, soak=6)],
)
def test_no_serious_violation_of_accessibility(browser: Any, folder: Path, path: str, scheme: str) -> None:
    context = browser.new_context(viewport={"width": 320, "height": 700}, color_scheme=scheme)
    page = context.new_page()
    page.goto((folder / path).as_uri())
    page.locator(".md-copyright").scroll_into_view_if_needed()
    shoot(page, f"site-{path}-{scheme}")
    page.evaluate(FEW_CALLS)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert violations(page) == []
    context.close()


def test_the_first_page_shows_what_it_is_and_where_to_begin(folder: Path, page: Any) -> None:
    page.goto((folder / "index.html").as_uri())
    assert page.locator("article img").evaluate("each => each.decode().then(() => each.naturalWidth)") > 0
    page.get_by_role("link", name="Begin: ten minutes").click()
    page.wait_for_url("**/tutorial.html")


def test_a_call_needs_the_address_of_an_api(folder: Path, page: Any) -> None:
    page.goto((folder / "api/events.html").as_uri() + "#postEvents")
    page.locator("details[open]:has(#postEvents)").get_by_role("button", name="Send").click()
    assert page.evaluate("document.activeElement.id") == "address"
