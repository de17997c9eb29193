"""The documentation site is built strictly: a link that goes nowhere ends the build."""

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

from infra.docs_site import OUTSIDE, on_page_markdown
from local.paths import ROOT


def test_every_page_is_there_and_every_link_leads_somewhere(tmp_path: Path) -> None:
    # Without -q: it keeps warnings from being counted, and then nothing is strict.
    command = [sys.executable, "-m", "mkdocs", "build", "-f", "infra/mkdocs.yml", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pages = {str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*.html")}
    written = {str(each.relative_to(ROOT / "docs")) for each in (ROOT / "docs").rglob("*.md")}
    wanted = {re.sub(r"(README|index)\.md$", "index.md", each)[:-3] + ".html" for each in written}
    assert wanted | {f"{each[:-3]}.html" for each in OUTSIDE.values()} <= pages
    assert "How a late event" in (tmp_path / "concepts/how-a-late-event-changes-a-streak.html").read_text()
    # Nothing is fetched from elsewhere when a page is opened.
    page = (tmp_path / "index.html").read_text()
    assert re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="https?://', page) == []


def test_a_file_that_is_not_there_ends_the_build() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guides/operator.md"))

    def shown(text: str) -> str:
        return on_page_markdown(text, page=page, config=None, files=None)  # type: ignore[arg-type]

    assert (
        shown("[a](../../ARCHITECTURE.md#x) [b](../runbook.md)")
        == "[a](../ARCHITECTURE.md#x) [b](../runbook.md)"
    )
    assert shown("[the rules' code](../../rules) `[x](y)`") == "the rules' code `[x](y)`"
    with pytest.raises(PluginError, match="which is not there"):
        shown("[x](../../rules/nothing.py)")
