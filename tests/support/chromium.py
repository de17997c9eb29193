"""One browser for all tests of a process: Playwright's second start in a process fails."""

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

# The browser with all of its settings.
WHOLE = os.environ.get("CHROMIUM") or next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
# The same engine without windows and settings, where it is installed: tests take half of the CPU in it.
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium-headless-shell") or WHOLE
NOT_INSTALLED = "Chromium is not installed (Debian: apt-get install chromium; or set CHROMIUM to its path)"
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """The system's Chromium. A test that asks for it is skipped, with the reason, where there is none."""
    from playwright import sync_api

    if not CHROMIUM:
        pytest.skip(NOT_INSTALLED)
    with sync_api.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield launched
        launched.close()
