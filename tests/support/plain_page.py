"""The page's function without a sign-in service."""

import pytest

from adapters.settings.operations import PageSettings
from ingest import page


def plain_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the page's handler serve the folder with no settings."""
    site = page.build_site(page.FOLDER, PageSettings("", "", ""))
    page._docs.cache_clear()
    monkeypatch.setattr(page, "_parts", lambda: site)
