"""Commands that documents show are such as would be taken; what is not run is listed here, with the reason.

tests/e2e/test_documents.py runs what a laptop can run.
"""

import copy
import json
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from adapters.book_store import shipped_document
from local.rules_command import check
from tests.support.document_run import QUESTIONS, RUN, SELDOM_RUN, is_carried_out
from tests.support.documents import Block, blocks, blocks_of, documents, fences, other_code, spans_of, text_of
from tests.support.message_schema import problems as message_problems
from tests.support.shown_commands import commands, comment_problems, problems, python_problems, span_problem
from tests.support.template import ROOT

AWS, NOT_RUN = "on AWS", "not run"
# Each block that is marked, or is no code: by document and first line, with the reason why nothing runs it.
EXCEPTIONS: Mapping[str, Mapping[str, str]] = {
    "ARCHITECTURE.md": {
        "local, bench        the command, the laptop cloud, benchmarks": "a drawing",
    },
    "CONTRIBUTING.md": {
        "make setup": "this test is a part of it",
        "make unit": "this test is a part of it",
    },
    "README.md": {
        "make demo": "tests/integration/test_dist.py runs it in a copy, each night; `make test` is all tests",
        "make dist": "tests/integration/test_dist.py runs it in a copy, each night; `make test` installs each package",
        "streakline plan --daily-actives 10000": AWS,
        "sam build": AWS,
    },
    "docs/commands.md": {"streakline preflight --size standard --region eu-west-1": AWS},
    "docs/decisions/0016-packed-records.md": {'{"dt":"2026-11-21","hour":"05","rows":[': "a shape of lines"},
    "docs/guides/analysts-tools.md": {
        "curated/events/dt=2026-11-28/hour-07.parquet   rows of an hour (UTC)": "names of files",
        'aws s3 sync s3://the-lake-bucket/curated lake --exclude "*" --include "events/dt=2026-11*" '
        '--include "daily_activity/*"': AWS,
        "INSTALL httpfs; LOAD httpfs;": "DuckDB would get it from its own site",
        "packages:": "tests/sql/test_dbt_package.py runs the package by itself",
        'pip install "dbt-core<1.12" dbt-duckdb': "tests/sql/test_dbt_package.py does it in an environment of uv's",
        "GRANT USAGE ON SCHEMA lake TO ROLE streakline_analysts;": "DuckDB has no roles",
    },
    "docs/guides/backup.md": {"streakline demo": "tests/integration/test_restore.py is the drill"},
    "docs/guides/operator.md": {
        "streakline preflight --parameter WithLeads=false --parameter WithQuestions=false": AWS,
        "streakline preflight": AWS,
        "streakline preflight --size standard --region eu-west-1": AWS,
        "sam build": AWS,
    },
    "docs/guides/undo-a-book.md": {
        "streakline rules list": "tests/e2e/test_rules.py does the like with a book of its own",
    },
    "docs/guides/a-league.md": {
        "book.yaml: a book of rules": "in test_book_page.py",
    },
    "docs/guides/loyalty-levels.md": {"book.yaml: a book of rules": "in test_book_page.py"},
    "docs/guides/what-if.md": {
        "half.json in force all along, as of 2026-04-08T00:00:00Z: 5,531 ledger entries": "of Flask's history"
    },
    "docs/runbook.md": {
        "streakline status --stack-name streakline --region eu-west-1": AWS,
        "streakline key announce --stack-name streakline": AWS,
        'aws dynamodb scan --table-name REWARDS_TABLE --filter-expression "fulfilment = :requested" '
        """--expression-attribute-values '{":requested": {"S": "requested"}}'""": AWS,
        "sam deploy --region us-east-1 --parameter-overrides Role=active PeerRegion=us-west-2 "
        "WitnessRegion=us-east-2": AWS,
    },
    "docs/settings.md": {
        'Settings="RateLimitPerMinute=600; Currency=EUR; ExchangeRates=USD=0.92 GBP=1.17"': "a parameter's value"
    },
    "docs/uninstall.md": {
        "aws cloudformation describe-stacks --stack-name streakline --query 'Stacks[0].Outputs' > outputs.json": AWS,
        """for table in $(jq -r '.[] | select(.OutputKey | endswith("Table")) | .OutputValue' outputs.json); do""": AWS,
    },
    "sql/README.md": {
        'GRANT ROLE streakline_analysts TO "IAMR:analysts";': "DuckDB has no roles",
        "from analytics.warehouse import redshift_client": AWS,
        "duckdb -readonly .local/warehouse.duckdb": "DuckDB's own command line is not installed",
    },
}
# Blocks that other tests carry out: by document and language.
ELSEWHERE = {
    ("docs/rules/*.md", "python"): "tests/unit/platform/test_docs.py",
    ("docs/recipes/*.md", "python"): "tests/recipes/test_recipes.py, which says the same (below)",
    ("docs/recipes/take-a-part-out.md", "bash"): "tests/recipes/test_taken_out_part.py",
    QUESTIONS: "tests/sql",
    ("docs/guides/analysts-tools.md", "bash"): "tests/sql/test_analysts_tools.py",
    ("docs/guides/analysts-tools.md", "python"): "tests/sql/test_analysts_tools.py",
    ("docs/guides/analysts-tools.md", "sql"): "tests/sql/test_analysts_tools.py",
    ("docs/guides/sign-in.md", "*"): "tests/integration/test_sign_in_key.py",
    ("*", "ts"): "tests/e2e/test_documents.py",
    ("*", "tsx"): "tests/clients/test_typescript.py",
    ("*", "json"): "below",
    ("*", "yaml"): "below",
}
SECTIONS = {*shipped_document(), "rewards", "boosts", "expiry", "offline", "boards", "leagues"}
MINUTES = {"type": "object", "properties": {"minutes": {"type": "integer", "minimum": 0, "maximum": 1440}}}
ALL = [each for document in documents() for each in blocks(document)]
MARKED_BLOCKS = [each for each in ALL if each.mark]
SELDOM_RUN_BLOCKS = [each for each in ALL if each.document in SELDOM_RUN and is_carried_out(each)]


def is_run(block: Block) -> bool:
    """Whether a test carries a block out."""
    here = block.document in RUN and is_carried_out(block)
    return here or any(
        fnmatchcase(block.document, document) and fnmatchcase(block.language, language) and not block.mark
        for document, language in ELSEWHERE
    )


def test_every_block_is_run_or_listed_with_a_reason() -> None:
    left_out = {(each.document, each.head): each.place for each in ALL if not is_run(each)}
    listed = {(document, head) for document, heads in EXCEPTIONS.items() for head in heads}
    assert {place for each, place in left_out.items() if each not in listed} == set(), "run by no test"
    assert listed - left_out.keys() == set(), "no such block, or it is run"


def test_every_mark_says_one_of_two_things() -> None:
    assert {each.place for each in MARKED_BLOCKS if each.mark not in (AWS, NOT_RUN)} == set()
    of_aws = {(each.document, each.head) for each in MARKED_BLOCKS if each.mark == AWS}
    listed = {(name, head) for name, heads in EXCEPTIONS.items() for head in heads if heads[head] == AWS}
    assert of_aws == listed


@pytest.mark.parametrize("document", documents())
def test_no_block_escapes(document: str) -> None:
    """Each fence says its language, and opens or closes a block that is found."""
    text = text_of(document)
    assert fences(text) == 2 * len(blocks(document))
    assert [each.place for each in blocks(document) if not each.language] == []
    assert other_code(text) == []
    # A comment that stands elsewhere than before a fence marks nothing.
    assert len(re.findall(r"^ *<!--", text, re.MULTILINE)) == sum(
        bool(each.mark) for each in blocks(document)
    )


@pytest.mark.parametrize(
    "block",
    [each for each in (*MARKED_BLOCKS, *SELDOM_RUN_BLOCKS) if each.language == "bash"],
    ids=lambda each: each.place,
)
def test_commands_that_are_not_run_would_be_taken(block: Block, tmp_path: Path) -> None:
    assert problems(block.text, tmp_path) == []


@pytest.mark.parametrize(
    "block",
    [each for each in (*MARKED_BLOCKS, *SELDOM_RUN_BLOCKS) if each.language == "python"],
    ids=lambda each: each.place,
)
def test_python_that_is_not_run_fits_what_it_calls(block: Block) -> None:
    assert python_problems(block.text) == []


@pytest.mark.parametrize("document", RUN)
def test_options_in_comments_beside_commands_are_there(document: str) -> None:
    lines = [line for each in blocks(document) if each.language == "bash" for line in each.text.splitlines()]
    assert [wrong for line in lines for wrong in comment_problems(line)] == []


def test_recipes_show_what_is_carried_out() -> None:
    """A block of one value has parentheses and a comma around it, so that it is a statement."""
    carried_out = "".join(each.read_text(encoding="utf-8") for each in (ROOT / "tests/recipes").glob("*.py"))
    found = [each for each in ALL if each.document.startswith("docs/recipes/") and each.language == "python"]
    shown = {each.place: each.text.strip().removeprefix("(").removesuffix(",)") for each in found}
    assert len(shown) > 3
    assert [place for place, text in shown.items() if text not in carried_out] == []


@pytest.mark.parametrize("document", sorted({each.document for each in ALL if each.language == "yaml"}))
def test_a_document_s_parts_of_a_book_are_taken(document: str, tmp_path: Path) -> None:
    """A part is a whole book, a section of one, or event types. A type that a section names has a measured property."""
    book: dict[str, Any] = copy.deepcopy(shipped_document())
    texts = [each.text for each in blocks(document) if each.language == "yaml"]
    for part in map(yaml.safe_load, texts):
        if "format" in part:
            book = part
            continue
        for name, said in (part if part.keys() <= SECTIONS else {"event_types": part}).items():
            book[name] = said if isinstance(said, list) else {**book.get(name, {}), **said}
    for name in re.findall(r"\b[A-Z][A-Z_]+\b", "".join(texts)):
        book["event_types"].setdefault(name, {"points": 1, "properties": MINUTES})
    (file := tmp_path / "book.yaml").write_text(json.dumps(book), encoding="utf-8")
    check(file)


@pytest.mark.parametrize(
    "block", [each for each in ALL if each.language == "json"], ids=lambda each: each.place
)
def test_json_is_json_and_a_webhook_s_body_is_one(block: Block) -> None:
    json.loads(block.text)
    if block.document == "docs/webhooks.md":
        assert message_problems(block.text.encode()) == []


@pytest.mark.parametrize("name", sorted(commands()))
def test_the_examples_of_a_command_s_help_would_be_taken(name: str, tmp_path: Path) -> None:
    epilog = commands()[name].epilog or ""
    examples = [line.strip() for line in epilog.splitlines() if line.startswith("  ")]
    assert examples, "a command shows how it is called"
    for example in examples:
        assert f"streakline {name}" in example, "it is an example of this command"
        assert problems(example, tmp_path) == []


@pytest.mark.parametrize("document", documents())
def test_commands_in_sentences_would_be_taken(document: str) -> None:
    assert [wrong for each in spans_of(text_of(document)) if (wrong := span_problem(each))] == []


@pytest.mark.parametrize("document", documents())
def test_commands_are_called_in_one_way(document: str) -> None:
    """`source .venv/bin/activate` is said where somebody begins; everything else is called by its name."""
    assert re.findall(r"(?<!source )\.venv/bin/\S+", text_of(document)) == []


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("streakline night run --stack-name streakline --dryrun", "No such option '--dryrun'"),
        ("streakline rules rerate --dry-run", "Missing option '--from'"),
        ("streakline night rebild", "No such command 'rebild'"),
        ("streakline rules rerate --from yesterday", "yesterday: no day"),
        ("streakline rules rerate --fro 2026-03-01", "--fro"),
        ("streakline night run  # --form DAY", "no --form here"),
        ("streakline hook add --organization shop --source form", "'form' is not one of 'ecommerce'"),
        ("streakline report --stack-name NAME", "No such option '--stack-name'"),
        (".venv/bin/streakline status", "No such file"),
        ("streaklin status", "command not found"),
        ("aws dynamo scan --table-name T", "no service 'dynamo'"),
        ("aws dynamodb scan-table --table-name T", "no operation 'scan-table'"),
        ("aws dynamodb scan --tablename T", "unknown: --tablename"),
        ("aws dynamodb scan", "--table-name must be given"),
        ('aws dynamodb scan --table-name T --expression-attribute-values \'{":r": {"X": "a"}}\'', "X"),
        ("aws sqs list-queues --query 'QueueUrls[0'", "--query"),
        ("aws s3 copy a b", "no operation 'copy'"),
        ("aws logs tail GROUP --sinse 1h", "unknown: --sinse"),
        ("sam deploy --parameter-overrides Role=active Sise=small", "no parameter Sise"),
        ("make deplay", "no deplay"),
        ("for each in a; do make up", "syntax error"),
        ("pytest tests/unit/nowhere", "there is no tests/unit/nowhere"),
        ("python -m bench nowhere", "there is no"),
    ],
)
def test_a_wrong_command_in_a_block_is_found(wrong: str, why: str, tmp_path: Path) -> None:
    assert why in "\n".join(problems(wrong, tmp_path))


@pytest.mark.parametrize(
    "wrong",
    [
        "streakline reports",
        "streakline night run --form DAY",
        "streakline rules check | dif | publish",
        "streakline up, dwn, status",
        "--from 1970-01-01T00:00:00Z --rerate",
        "--leave-refuse",
        "hook lst",
        "night rebuild --users U",
        "aws sqs receive-messages",
        "make chek",
        "sam deploy --parameter-override A=b",
    ],
)
def test_a_wrong_command_in_a_sentence_is_found(wrong: str) -> None:
    assert span_problem(wrong)


@pytest.mark.parametrize(
    "right",
    [
        "streakline",
        "streakline night rebuild --from DAY --to DAY [--entity E]",
        "aws s3 sync",
        "import boto3",
    ],
)
def test_a_sentence_need_not_say_all(right: str) -> None:
    assert span_problem(right) is None


def test_a_block_is_found_with_its_mark_wherever_it_stands() -> None:
    text = "- a list:\n\n  <!-- on AWS -->\n\n  ```bash\n  aws s3 ls\n  ```\n\n```sql\nSELECT 1\n```\n"
    listed, plain = blocks_of("a.md", text)
    assert (listed.mark, listed.line, listed.text) == (AWS, 5, "aws s3 ls\n")
    assert (plain.mark, plain.language, plain.line) == ("", "sql", 9)
    assert list(spans_of(f"{text}``make \na`` or `b`, and `\n\n`")) == ["make a", "b"]
    assert other_code(f"{text}`<pre>`\n\n    $ streakline up\n<code>a</code>") == [
        "    $ streakline up",
        "<code",
    ]
    assert fences(f"~~~\n> ```\n    ````\n{text}") == 7


@pytest.mark.parametrize(
    "wrong",
    [
        "from local.stack import found",
        "from local.stack import find\nfind()",
        "from local import stack\nstack.load('a', 'b')",
        "from local import analyst\nanalyst.frames('SELECT 1')",
    ],
)
def test_python_that_does_not_fit_is_found(wrong: str) -> None:
    assert python_problems(wrong)
