"""The documentation site, opened from files as `make docs` leaves them, in a browser."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.conftest import PHONE, WIDE, shoot
from tests.support.template import ROOT

pytestmark = pytest.mark.xdist_group("browser")


@pytest.fixture(scope="module")
def folder(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder. Without a browser nothing is built."""
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "-q", "-f", "infra/mkdocs.yml", "-d", str(made)]
    subprocess.run(command, cwd=ROOT, check=True)
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
