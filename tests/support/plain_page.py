"""The page's function without a sign-in service."""

import pytest

from ingest import page
from ingest.page import PageSettings


def plain_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the page's handler serve the folder with no settings."""
    site = page.build_site(page.FOLDER, PageSettings("", "", ""))
    page._docs.cache_clear()
    monkeypatch.setattr(page, "_parts", lambda: site)
