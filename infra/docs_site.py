"""The hook of the documentation site: pages from outside docs/ or made, and links to files that are no pages.

MkDocs calls these functions by their names. A link to a page or picture of the site becomes one within the
site. A link to another file of the repository becomes its text. A link to a missing file ends the build.
"""

import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from mkdocs.structure.toc import get_toc

from analytics.warehouse.models import Model, models
from infra.api_reference import reference, tag_id
from ingest.openapi import TAGS, document

ROOT = Path(__file__).parent.parent
# Pages from outside docs/: their path in the repository, and in the site
OUTSIDE = {
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CHANGELOG.md": "CHANGELOG.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "README.md": "overview.md",
    "sql/README.md": "sql.md",
    "sql/lake.md": "lake.md",
    "client/python/README.md": "client-python.md",
    "client/typescript/README.md": "client-typescript.md",
}
# Files of the site that are not below docs/: their path in the site, and in the repository
SHARED = {
    "theme.css": "page/theme.css",
    "icon.svg": "page/icon.svg",
    "site.css": "infra/site.css",
    "iframe-worker.js": "infra/iframe-worker.js",
    "docs.js": "page/docs.js",
    "openapi.json": "ingest/openapi.json",
}
API_PAGE, MODELS_PAGE = "api.md", "models.md"
# A page for the calls of each tag
TAG_PAGES = {f"api/{tag_id(tag)}.md": tag for tag in TAGS}
# A page for each schema of the warehouse
SCHEMA_PAGES = {
    schema: f"models/{schema}.md" for schema in sorted({name.partition(".")[0] for name in models()})
}
# What the first page shows below its first paragraph
START = """
[Begin: ten minutes](tutorial.md){ .md-button .md-button--primary }

![The page: a streak of 44 days, a level, and why a date counts](images/you.png)
"""
# Whoever searches for a word wants the page that explains it (mkdocs.yml says which page some words mean).
# After it come those that say why something is so, then those that name everything once. Their titles are no
# better than a text that has the word.
REASONS_BOOST, LISTS_BOOST = 0.3, 0.002
LISTS = {"runbook.md", "settings.md", "CHANGELOG.md", "lake.md", MODELS_PAGE, *SCHEMA_PAGES.values()}
API_BOOST = 0.2
LLMS_HEAD = """# Streakline

> An open-source server of streaks and points for your own AWS account. It stays exact when events arrive
> late, twice or out of order.

Each page as Markdown; `openapi.json` has the API.
"""
# Code, which stays as it is, or a link, whose text may have code
CODE_OR_LINK = re.compile(
    r"```.*?```|`[^`\n]*`|\[((?:[^\[\]`]|`[^`\n]*`|\[[^\]]*\])*)\]\(([^)\s]+)\)", re.DOTALL
)

_markdown: dict[
    str, tuple[str, str]
] = {}  # path in the site -> the page's title and text, in the order of the build


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Add what the folders list: all recipes and all decisions."""
    nav: list[Any] = list(config.nav or [])
    recipes = sorted(path.name for path in (ROOT / "docs/recipes").glob("*.md") if path.name != "README.md")
    decisions = ["README.md", *sorted(path.name for path in (ROOT / "docs/decisions").glob("0*.md"))]
    for entry in nav:
        if isinstance(entry, dict) and "Changing it" in entry:
            entry["Changing it"] += [f"recipes/{recipe}" for recipe in recipes]
    pages = [
        "sql.md",
        MODELS_PAGE,
        *SCHEMA_PAGES.values(),
        "lake.md",
        "client-python.md",
        "client-typescript.md",
    ]
    api = [API_PAGE, *TAG_PAGES]
    nav.append({"Reference": [{"Overview": "overview.md"}, {"API": api}, *pages]})
    nav.append({"Decisions": [f"decisions/{decision}" for decision in decisions]})
    config.nav = nav
    return config


def on_files(files: Files, *, config: MkDocsConfig) -> Files:
    """Add the pages from outside docs/, and those that are made."""
    for source, page_path in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page_path, content=text))
    files.append(File.generated(config, MODELS_PAGE, content="\n".join(_models_index())))
    for schema, path in SCHEMA_PAGES.items():
        files.append(File.generated(config, path, content="\n".join(_schema_text(schema))))
    for path, title in {API_PAGE: "API reference", **TAG_PAGES}.items():
        files.append(File.generated(config, path, content=f"# {title}"))
    for file_path, source in SHARED.items():
        files.append(File.generated(config, file_path, abs_src_path=str(ROOT / source)))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links to where things are in the site. The first page also gets START."""
    page_path = page.file.src_uri
    if page_path == "index.md":
        title, first, rest = markdown.split("\n\n", 2)
        markdown = f"{title}\n\n{first}\n\n{START}\n\n{rest}"
    if (boost := _boost(page_path)) != 1:
        page.meta["search"] = {"boost": boost}
    if words := config.extra["search_words"].get(page_path):
        page.meta["tags"] = words.split()
    source = next((source for source, path in OUTSIDE.items() if path == page_path), f"docs/{page_path}")
    is_made = page_path in (MODELS_PAGE, *SCHEMA_PAGES.values())  # its links are those of the site already
    written = markdown
    if not is_made:
        written = CODE_OR_LINK.sub(
            lambda match: match[0] if match[2] is None else _site_link(match, source, page_path), markdown
        )
    if page_path != API_PAGE and page_path not in TAG_PAGES:
        _markdown[page_path] = page.title or page_path, written
    return written


def on_page_content(html: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Fill the pages of the API. Let the keyboard come to tables, which scroll on narrow screens."""
    described = document()
    if page.file.src_uri == API_PAGE:
        tags = ((tag_id(tag), tag) for tag in TAGS)
        common = (("errors", "Errors"), ("schemas", "Schemas"))
        page.toc = get_toc(_entries((("first", "Send the first event"), *tags, *common)))
        return reference(described, script="docs.js", is_within_site=True)
    if tag := TAG_PAGES.get(page.file.src_uri):
        page.toc = get_toc(
            _entries(
                (operation["operationId"], f"{method.upper()} {path}")
                for path, methods in described["paths"].items()
                for method, operation in methods.items()
                if operation["tags"] == [tag]
            )
        )
        return reference(described, script="../docs.js", is_within_site=True, tag=tag)
    return html.replace("<table>", '<table tabindex="0">')


def _entries(headings: Iterable[tuple[str, str]]) -> Any:
    """Return a table of contents of headings, each with its id and its text."""
    return [{"level": 2, "id": anchor, "name": name, "children": []} for anchor, name in headings]


def on_post_page(output: str, *, page: Page, config: MkDocsConfig) -> str:
    """Name the dialog of the search for screen readers: the theme does not."""
    return output.replace('role="dialog"', 'role="dialog" aria-label="Search"')


def on_post_build(*, config: MkDocsConfig) -> None:
    """Put each page's Markdown beside its HTML, and `llms.txt`, which lists them, for programs that read."""
    site, lines = Path(config.site_dir), [LLMS_HEAD]
    for page_path, (title, text) in _markdown.items():
        path = site / page_path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        lines.append(f"- [{title}]({page_path})")
    (site / "llms.txt").write_text("\n".join([*lines, ""]), encoding="utf-8")


def _boost(page_path: str) -> float:
    """Return how much a page counts in the search."""
    if page_path in LISTS:
        return LISTS_BOOST
    if page_path == API_PAGE or page_path in TAG_PAGES:
        return API_BOOST
    return REASONS_BOOST if page_path.startswith(("decisions/", "recipes/")) else 1


def _models_of(schema: str) -> Iterator[tuple[str, Model]]:
    """Yield the models of a schema, by name."""
    yield from ((name, model) for name, model in sorted(models().items()) if name.startswith(f"{schema}."))


def _sentence(model: Model) -> str:
    return f"{model.grain[:1].upper()}{model.grain[1:]}."


def _models_index() -> Iterator[str]:
    """Yield the lines of the page that lists all models, by schema and name."""
    yield "# Models"
    for schema, path in SCHEMA_PAGES.items():
        yield f"\n## {schema}\n\n| model | what a row is |\n|---|---|"
        for name, model in _models_of(schema):
            words = _sentence(model).replace("|", "&#124;")
            yield f"| [{name}]({path}#{name.replace('.', '')}) | {words} |"


def _schema_text(schema: str) -> Iterator[str]:
    """Yield the lines of the page of a schema's models and their columns."""
    yield f"# Models of {schema}"
    for name, model in _models_of(schema):
        key = ", ".join(f"`{column}`" for column in model.key)
        yield f"\n## {name}\n\n{_sentence(model)} Key: {key}.\n\n| column | meaning |\n|---|---|"
        yield from (
            f"| `{column}` | {words.replace('|', '&#124;')} |" for column, words in model.columns.items()
        )


def _site_link(match: re.Match[str], source: str, page_path: str) -> str:
    """Return a link as the site has it. source, page_path: of its page in the repository, and in the site."""
    text, target = match.groups()
    path, _, anchor = target.partition("#")
    if not path or ":" in path:
        return match[0]
    linked = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
    if not (ROOT / linked).exists():
        raise PluginError(f"{source} links to {target}, which is not there")
    if (ROOT / linked).is_dir() and (ROOT / linked / "README.md").exists():
        linked = f"{linked}/README.md"
    page = OUTSIDE.get(linked) or (linked.removeprefix("docs/") if linked.startswith("docs/") else None)
    if page is None or not page.endswith((".md", ".svg", ".png")):
        return text
    relative = posixpath.relpath(page, posixpath.dirname(page_path) or ".")
    return f"[{text}]({relative}{'#' + anchor if anchor else ''})"
