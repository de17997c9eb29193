"""The documents are true: what they name is there, their examples hold, and each alarm has its place in the runbook."""

import doctest
import re
from collections.abc import Iterator
from datetime import date
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from local.operate.redrive import CONSUMERS
from tests.support.template import ROOT, template

GUIDES = (ROOT / "sql/README.md", *(ROOT / "client").glob("*/README.md"))
# docs/recipes names files that are yet to be made; `make recipes` carries it out.
DOCS = sorted(
    str(each.relative_to(ROOT))
    for each in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *GUIDES)
    if each.parent.name != "recipes"
)
BUILT = {"dist"}
FOLDERS = sorted(
    each.name for each in ROOT.iterdir() if each.is_dir() and each.name not in BUILT and each.name[0] != "."
)
TEXTS = {".py", ".md", ".sql", ".yml", ".yaml", ".toml", ".json", ".js", ".html", ".css"}
# Not of links: they are relative to the page, and tested as links.
PATH = re.compile(rf"(?<!\]\()(?<![\w./{{-])(?:{'|'.join(FOLDERS)})/[\w./-]*[\w/]")
PLACEHOLDER = re.compile(r"/(?!README)[A-Z]+\b")  # infra/app/DOMAIN.yaml
MODULE = re.compile(
    r"(?<![\w./])(?:rules|adapters|ingest|processors|analytics|local|bench)(?:\.(?!md\b)[a-z]\w*)+"
)
LINK = re.compile(r"\]\((?!https?://)([^)#\s]+)")
NAMED_TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+)")
CITED = re.compile(r"\b[Rr]ules? (\d+(?:(?:, | and | to )\d+)*)")
EXAMPLES = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
RULE_PAGES = sorted(str(each.relative_to(ROOT)) for each in (ROOT / "docs/rules").glob("*.md"))
FIRST_DESIGN = "DES" + "IGN"  # a document that is not in the repository
RULES = {*range(1, 28)}
OF_PARTNERS = {"ShipmentFailures": "-"}  # no consumer of ours takes from them


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def sources() -> Iterator[str]:
    """Every text of the repository, by path."""
    paths = [*ROOT.glob("*"), *(each for name in FOLDERS for each in (ROOT / name).rglob("*"))]
    for path in paths:
        if "node_modules" in path.parts:
            continue
        if path.is_file() and (path.suffix in TEXTS or path.name == "Makefile"):
            yield str(path.relative_to(ROOT))


def is_module(name: str) -> bool:
    """Whether a dotted name is a package or a module, or something in one."""
    *parents, last = name.split(".")
    here = ROOT.joinpath(*parents)
    return (here / last).is_dir() or (here / f"{last}.py").exists() or here.with_suffix(".py").exists()


@pytest.mark.parametrize("name", DOCS)
def test_what_a_document_names_is_there(name: str) -> None:
    named = {each for each in PATH.findall(text(name)) if not PLACEHOLDER.search(each)}
    assert {each for each in named if not (ROOT / each).exists()} == set()
    assert {each for each in MODULE.findall(text(name)) if not is_module(each)} == set()


@pytest.mark.parametrize("name", DOCS)
def test_links_lead_somewhere(name: str) -> None:
    here = (ROOT / name).parent
    assert {each for each in LINK.findall(text(name)) if not (here / each).exists()} == set()


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("DynamoDB tables", "AWS::DynamoDB::Table"),
        ("buckets", "AWS::S3::Bucket"),
        ("Firehose streams", "AWS::KinesisFirehose::DeliveryStream"),
    ],
)
def test_the_guide_counts_what_is_created(words: str, kind: str) -> None:
    told = re.findall(rf"(\d+) {words}", text("docs/guides/operator.md"))
    assert told == [str(sum(each["Type"] == kind for each in template()["Resources"].values()))]


def test_tests_that_are_named_are_there() -> None:
    named = {each for name in DOCS for each in NAMED_TEST.findall(text(name))}
    assert len(named) > 20
    assert {each for each in named if f"def {each[1]}(" not in text(each[0])} == set()


def test_every_rule_that_is_cited_is_written_down() -> None:
    numbers = [
        int(each) for page in RULE_PAGES for each in re.findall(r"^## Rule (\d+):", text(page), re.MULTILINE)
    ]
    written = set(numbers)
    assert written == RULES
    assert len(numbers) == len(written), "two pages have one rule"
    cited = {
        int(each)
        for name in sources()
        for found in CITED.findall(text(name))
        for each in re.findall(r"\d+", found)
    }
    assert {7} <= cited <= written


def test_nobody_cites_what_is_not_in_the_repository() -> None:
    assert [name for name in sources() if re.search(rf"\b{FIRST_DESIGN}\b", text(name))] == []


def test_the_index_of_the_rules_has_each_page() -> None:
    linked = re.findall(r"\]\((rules/[\w-]+\.md)\)", text("docs/rules.md"))
    assert sorted(f"docs/{each}" for each in linked) == RULE_PAGES


@pytest.mark.parametrize("page", [each for each in RULE_PAGES if not each.endswith("edge-cases.md")])
def test_the_examples_of_the_rules_hold(page: str) -> None:
    examples = "\n".join(EXAMPLES.findall(text(page)))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, page, page, 0)
    assert len(parsed.examples) > 10
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.IGNORE_EXCEPTION_DETAIL).run(parsed, out=said.append)
    assert "".join(said) == ""


def test_every_rule_that_is_built_says_where_and_how_it_is_tested() -> None:
    sections = [
        section
        for page in RULE_PAGES
        for section in re.split(r"^## Rule ", text(page), flags=re.MULTILINE)[1:]
    ]
    assert [
        each.split(":")[0]
        for each in sections
        if "**Not built yet.**" not in each
        and ("- **Where**: `" not in each or "- **Tested**: `tests/" not in each)
    ] == []


def test_the_glossary_is_in_order() -> None:
    terms = re.findall(r"^\*\*(.+?)\*\*: ", text("docs/glossary.md"), re.MULTILINE)
    assert len(terms) > 50
    assert terms == sorted(set(terms))


def deployed(kind: str) -> dict[str, dict[str, Any]]:
    """Resources of a type in template.yaml and in what it nests, by logical id."""
    nested = [f"infra/{path.name}" for path in Path(ROOT / "infra").glob("*.yaml")]
    found = (each for name in ("template.yaml", *nested) for each in template(name)["Resources"].items())
    return {name: each["Properties"] for name, each in found if each["Type"] == kind}


ALARMS = deployed("AWS::CloudWatch::Alarm")
SECTIONS = re.findall(r"^### (`.*?)\n(.*?)(?=^##|\Z)", text("docs/runbook.md"), re.DOTALL | re.MULTILINE)
RUNBOOK = {name: body for heading, body in SECTIONS for name in re.findall(r"`([^`]+)`", heading)}


def metric_names(alarm: dict[str, Any]) -> set[str]:
    """The metric of an alarm, or those that its expression adds up or asks for."""
    parts = alarm.get("Metrics", [])
    stats = [each["MetricStat"]["Metric"] for each in parts if "MetricStat" in each]
    asked = {
        name for each in parts for name in re.findall(r"SELECT \w+\((\w+)\)", str(each.get("Expression", "")))
    }
    return asked or {each["MetricName"] for each in stats or [alarm]}


@pytest.mark.parametrize("name", ALARMS)
def test_the_runbook_says_what_to_do_when_an_alarm_sounds(name: str) -> None:
    fitting = [each for each in RUNBOOK if fnmatchcase(name, each)]
    assert fitting, f"docs/runbook.md has no heading for the alarm {name}"
    section = RUNBOOK[max(fitting, key=lambda each: ("*" not in each, len(each)))]
    for metric in metric_names(ALARMS[name]):
        assert f"`{metric}`" in section, f"{name} is another alarm than docs/runbook.md tells of"
    assert "- **Over**" in section or "](#failure-queues)" in section


def test_the_runbook_tells_of_no_alarm_that_there_is_not() -> None:
    assert {
        each for each in RUNBOOK if not each.strip("*") or not any(fnmatchcase(name, each) for name in ALARMS)
    } == set()


def test_the_runbook_tells_of_every_failure_queue() -> None:
    told = dict(re.findall(r"^\| `(\w+Failures)` \| ([\w-]+) \|", text("docs/runbook.md"), re.MULTILINE))
    queues = {name for name in deployed("AWS::SQS::Queue") if name.endswith("Failures")}
    assert set(told) == queues, f"docs/runbook.md, Failure queues: {sorted(set(told) ^ queues)}"
    redriven = {consumer.queue_name: name for name, consumer in CONSUMERS.items()}
    assert redriven | OF_PARTNERS == told, (
        f"CONSUMERS in local/operate/redrive.py: {sorted(set(told.items()) ^ set(redriven.items()))}"
    )


def test_the_index_of_decisions_has_each_page_with_its_state_and_date() -> None:
    """Decisions are added to: one that is superseded stays, and says by which number."""
    row = re.compile(
        r"^\| (\d+) \| \[(.+)\]\((\d{4})(-[\w-]+\.md)\) \| (holds|superseded (?:in part )?by \d+) \| (\d{4}-\d\d-\d\d) \|$",
        re.MULTILINE,
    )
    rows = row.findall(text("docs/decisions/README.md"))
    pages = sorted((ROOT / "docs/decisions").glob("0*.md"))
    assert [number + rest for _, _, number, rest, _, _ in rows] == [each.name for each in pages]
    titles = [each.read_text(encoding="utf-8").splitlines()[0] for each in pages]
    assert [f"# {number}. {title}" for number, title, *_ in rows] == titles
    numbers = [int(number) for number, *_ in rows]
    assert numbers == [int(each) for _, _, each, *_ in rows] == sorted(set(numbers))
    for number, *_, state, day in rows:
        assert date.fromisoformat(day)
        by = state.rpartition(" by ")[2]
        assert state == "holds" or (int(by) in numbers and int(by) > int(number)), f"{number}: by what?"
