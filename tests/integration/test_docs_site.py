"""A link of a document that goes nowhere ends the build of the site, which tests/browser/test_docs_site.py makes."""

from types import SimpleNamespace

import pytest
from mkdocs.exceptions import PluginError

from infra.docs_site import on_page_markdown


def test_a_file_that_is_not_there_ends_the_build() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="guides/operator.md"), title="Operators")
    config = SimpleNamespace(extra={"search_words": {}})

    def shown(text: str) -> str:
        return on_page_markdown(text, page=page, config=config, files=None)  # type: ignore[arg-type]

    assert (
        shown("[a](../../ARCHITECTURE.md#x) [b](../runbook.md)")
        == "[a](../ARCHITECTURE.md#x) [b](../runbook.md)"
    )
    assert shown("[the rules' code](../../rules) `[x](y)`") == "the rules' code `[x](y)`"
    assert shown("[`a` b](../../rules) [`c`](../runbook.md)") == "`a` b [`c`](../runbook.md)"
    assert shown("```\n[`x`](y)\n``` `[` [x](../../rules)") == "```\n[`x`](y)\n``` `[` x"
    with pytest.raises(PluginError, match="which is not there"):
        shown("[`x`](../../rules/nothing.py)")
    with pytest.raises(PluginError, match="which is not there"):
        shown("[x](../../rules/nothing.py)")
