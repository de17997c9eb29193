"""The documents, word for word, on the laptop cloud: each block that a laptop can run, and what it says that it prints.

What the blocks need beside the document (a shop's file, a user's points) is given here. Blocks that are not run are
listed in tests/unit/platform/test_doc_commands.py.
"""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from adapters.book_store import shipped_document
from ingest.web.caller import PRODUCERS
from local.api import Api
from local.operate import nightly_run
from local.paths import ROOT, WAREHOUSE
from local.sign_in import bearer
from local.stack import Stack
from tests.e2e.conftest import printed
from tests.e2e.test_survival import know_at_once
from tests.support.document_run import (
    OF_THE_WAREHOUSE,
    RUN,
    Premises,
    checkout,
    is_carried_out,
    missing_lines,
    ndjson,
    run,
    script,
)
from tests.support.documents import blocks, blocks_of, documents
from tests.support.effort import LEAVES_NONE, only_soak
from tests.support.node_tools import CLIENT, must, packages

pytestmark = pytest.mark.xdist_group("cloud")
# The page of commands and the tutorial say it themselves.
ACTIVATE = "source .venv/bin/activate"
HISTORY = """git init --quiet history
git -C history -c user.name=Ann -c user.email=ann@example.com commit --quiet --allow-empty --message "A first one" """
# Five people answer what AGENT asks, as it comes: one after the other, since each request in flight is a process.
ANSWERING = """
import threading, time
def answer():
    people = [Streakline(os.environ["STREAKLINE_URL"], token) for token in os.environ["PEOPLE"].split()]
    asked = []
    while not asked:
        time.sleep(0.5)
        asked = [each for each in people[0].open_questions()["questions"] if each["agent_id"] == os.environ["AGENT"]]
    for each in people:
        each.answer(asked[0]["question_id"], selected_option=0, confidence=4)
threading.Thread(target=answer, daemon=True).start()
"""
BOOK_KNOWN_SECONDS = 75
# What needs a night or its warehouse: `make soak` carries it out, `make test` asks for its help. Nights:
# tests/e2e/test_lake.py; rebuilds: tests/integration/test_curate_function.py; the others: tests/integration/test_sql_command.py,
# tests/unit/local/test_html_report.py, tests/integration/test_proving.py, tests/lake/test_point_in_time.py,
# tests/integration/test_what_if_jobs.py.
OF_NIGHTS = (
    "streakline night run",
    "streakline night rebuild",
    "streakline sql",
    "streakline report",
    "streakline proof make",
    "streakline features training-set",
    "streakline rules what-if",
)


@pytest.fixture(scope="module")
def book_of_others(stack: Stack, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Other tests go by the book that was in force before."""
    kept = tmp_path_factory.mktemp("book") / "kept.json"
    kept.write_text(printed("rules", "show", "--json"), encoding="utf-8")
    yield
    printed("rules", "publish", str(kept), "--effective", "now")


@pytest.fixture
def book_with_a_mug(stack: Stack, book_of_others: None, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The shipped book with a mug to sell is in force. Where it is already, nobody waits until functions know it."""
    book = {**shipped_document(), "rewards": {"mug": {"price_points": 120, "brand": "acme"}}}
    if json.loads(printed("rules", "show", "--json")) == book:
        return
    sold = tmp_path_factory.mktemp("book") / "sold.json"
    sold.write_text(json.dumps(book), encoding="utf-8")
    printed("rules", "publish", str(sold), "--effective", "now")
    know_at_once(stack, "UsersApi")


def readme_premises(stack: Stack, user: str, folder: Path) -> Premises:
    path = f"import sys; sys.path.insert(0, {str(ROOT / 'client' / 'python')!r})"
    before = f"{path}\ntoken = {bearer(stack, user)!r}"
    after = "me.flush()\nassert not me.waiting()\nme.close()"
    return Premises({"https://api.example.com": stack.api_url, "ann": user}, ACTIVATE, (before, after))


def command_premises(stack: Stack, user: str, folder: Path) -> Premises:
    ann, bob = f"{user}-ann", f"{user}-bob"
    rows = [
        f"{who},2026-04-{day:02}T21:30:00Z,{who}-{day},LESSON_COMPLETED,Europe/Berlin"
        for who in (ann, bob)
        for day in range(1, 8)
    ]
    head = "user_id,occurred_at,idempotency_key,event_type,timezone"
    (folder / "events.csv").write_text("\n".join([head, *rows]) + "\n", encoding="utf-8")
    (folder / "shop.csv").write_text(
        f"customer_id,date,quantity,amount\n{user},20260401,2,11.77\n", encoding="utf-8"
    )
    _write_history(folder, user)
    labels = {"lead_organization_id": ["acme"], "as_of": [datetime(2026, 4, 8, tzinfo=UTC)]}
    pq.write_table(pa.table(labels), folder / "labels.parquet")
    words = {"ann": ann, "bob": bob, "acme": f"acme{time.time_ns()}"}
    # tests/e2e/test_smoke.py carries it out on the same cloud, and looks at each of its steps.
    helped = ("streakline smoke", *(() if LEAVES_NONE else OF_NIGHTS))
    return Premises({**words, **{each: f"{each} --help" for each in helped}}, HISTORY)


def _write_history(folder: Path, user: str) -> None:
    row = {"user_id": f"{user}-old", "event_type": "LESSON_COMPLETED", "occurred_at": "2026-01-01T10:00:00Z"}
    (folder / "old.ndjson").write_text(ndjson(row), encoding="utf-8")


def client_premises(stack: Stack, user: str, folder: Path) -> Premises:
    today = datetime.now(UTC).date().isoformat()
    (folder / "points.ndjson").write_text(ndjson({"user_id": user, "as_of": today, "balance": 340}))
    people = " ".join(bearer(stack, f"{user}-{number}") for number in range(5))
    shell = f"""{ACTIVATE}
streakline events import points.ndjson > /dev/null
export AGENT={user} PEOPLE="{people}" TOKEN=$(streakline token --user {user} --agent)
for second in {{1..{BOOK_KNOWN_SECONDS}}}; do
  curl -s -H "Authorization: Bearer $TOKEN" "$STREAKLINE_URL/v1/rewards" | grep -q mug && break || sleep 1
done"""
    path = f"import os, sys; sys.path.insert(0, {str(ROOT / 'client' / 'python')!r})"
    before = f"{path}\nfrom streakline_client import Streakline\ntoken = os.environ['TOKEN']{ANSWERING}"
    after = "if 'me' in globals():\n    me.flush()\n    me.close()"
    return Premises(
        {"https://api.example.com": stack.api_url, "ann": user, "/var/lib/app": "."}, shell, (before, after)
    )


def build_warehouse(stack: Stack) -> None:
    """Run a night, unless another test of this cloud has run one."""
    if not WAREHOUSE.exists():
        nightly_run.run(stack, repair=False)


def analyst_premises(stack: Stack, user: str, folder: Path) -> Premises:
    build_warehouse(stack)
    return Premises(shell=ACTIVATE)


def warehouse_premises(stack: Stack, user: str, folder: Path) -> Premises:
    build_warehouse(stack)
    labels = {"lead_organization_id": ["acme"], "as_of": [datetime(2026, 4, 8, tzinfo=UTC)]}
    pq.write_table(pa.table(labels), folder / "labels.parquet")
    return Premises({"the-lake-bucket": stack.outputs["LakeBucketName"]}, ACTIVATE)


def move_in_premises(stack: Stack, user: str, folder: Path) -> Premises:
    _write_history(folder, user)
    page = (ROOT / "docs" / "guides" / "move-in.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`trophy.ndjson` has lines such as `(.+?)`", page)
    (folder / "trophy.ndjson").write_text(f"{line}\n", encoding="utf-8")
    (folder / "activities.csv").write_text(
        "id,user_id,finished_at,time_zone\n7,12,2019-05-01 22:30:00+00,Europe/Berlin\n", encoding="utf-8"
    )
    analytics = {
        "user_id": ["12"],
        "event_name": ["lesson_complete"],
        "event_timestamp": [1_556_749_800_000_000],
        "event_bundle_sequence_id": [3],
    }
    pq.write_table(pa.table(analytics), folder / "analytics-1.parquet")
    return Premises(shell=ACTIVATE)


def backend_premises(stack: Stack, user: str, folder: Path) -> Premises:
    token = bearer(stack, user, PRODUCERS)
    path = f"import sys; sys.path.insert(0, {str(ROOT / 'client' / 'python')!r})"
    before = f"{path}\nURL, fresh_token = {stack.api_url!r}, {token!r}"
    after = f"assert sent.is_stored\nassert {user!r} in streakline.profiles([{user!r}])"
    words = {"ada": user, "bob": f"{user}-bob"}
    return Premises(words, f"{ACTIVATE}\nexport STREAKLINE_TOKEN={token}", (before, after))


def tutorial_premises(stack: Stack, user: str, folder: Path) -> Premises:
    return Premises(shell=f"export APP_USER={user}")


PREMISES: dict[str, Callable[[Stack, str, Path], Premises]] = {
    "README.md": readme_premises,
    "client/python/README.md": client_premises,
    "docs/commands.md": command_premises,
    "docs/guides/analyst.md": analyst_premises,
    "docs/guides/move-in.md": move_in_premises,
    "docs/guides/python-backend.md": backend_premises,
    "docs/runbook.md": analyst_premises,
    "docs/tutorial.md": tutorial_premises,
    "sql/README.md": warehouse_premises,
}


LEFT_TO_SOAK = {
    **dict.fromkeys(
        OF_THE_WAREHOUSE,
        "test_commands_that_are_not_run_would_be_taken (tests/unit/platform/test_doc_commands.py) for its commands,"
        " tests/integration/test_sql_command.py and tests/sql/test_analyst.py for what they ask, test_events_without_an_entry"
        " (tests/sql/test_runbook.py) for the runbook's query",
    ),
    "docs/guides/move-in.md": "tests/unit/local/test_move_in_recipes.py for its recipes, tests/e2e/test_move_in.py for the"
    " command on the cloud, test_commands_that_are_not_run_would_be_taken (tests/unit/platform/test_doc_commands.py)",
}


@pytest.mark.usefixtures("book_with_a_mug")
@pytest.mark.parametrize(
    "document",
    [pytest.param(each, marks=only_soak(LEFT_TO_SOAK[each]) if each in LEFT_TO_SOAK else ()) for each in RUN],
)
def test_what_a_document_shows_works(stack: Stack, user: str, document: str, tmp_path: Path) -> None:
    """One shell for all commands, in a folder that looks like the checkout; `make up` finds the cloud running."""
    checkout(tmp_path)
    steps = [each for each in blocks(document) if is_carried_out(each)]
    assert steps
    command = ROOT / ".venv" / "bin" / "streakline"
    installed = command.read_bytes()
    premises = PREMISES[document](stack, user, tmp_path)
    done = run(script(steps, premises, tmp_path), tmp_path, stack, {"STREAKLINE_URL": stack.api_url})
    assert done.failed == ""
    assert list(missing_lines(steps, done.printed)) == []
    assert command.read_bytes() == installed


# What an app has around the client. `me` of docs/clients.md is of a browser: its block is held against the types alone.
AROUND = """
const [url, user] = [process.env['STREAKLINE_URL']!, process.env['APP_USER']!];
const freshToken = () => process.env['STREAKLINE_TOKEN']!;
const session = { userId: user, freshToken };
const show = (...steps: unknown[]) => console.log(JSON.stringify(steps));
const report = (...refused: unknown[]) => { throw new Error(JSON.stringify(refused)); };
export { url, user, freshToken, session, show, report };
"""
IN_A_BROWSER = "docs/clients.md"
PAGE = """
declare const me: Streakline;
declare const document: { querySelector(name: string): { client: unknown; data: unknown } };
"""
AFTER = "await me.flush();\nif ((await me.waiting()).length > 0) throw new Error('events wait');\nawait me.close();\n"


def typescript(folder: Path, words: Mapping[str, str]) -> list[Path]:
    """The documents' blocks of TypeScript as files that compile by themselves; those that run without a browser are returned."""
    files = []
    for block in (each for document in documents() for each in blocks(document) if each.language == "ts"):
        file = folder / f"{block.document.replace('/', '-')}-{block.line}.ts"
        text = Premises(words).text(block)
        if block.document == IN_A_BROWSER:
            file.write_text(f"import {{ Streakline }} from 'streakline';\n{PAGE}{text}", encoding="utf-8")
            continue
        after = AFTER if "new Streakline(" in text else ""
        file.write_text(f"{AROUND}{text}\n{after}", encoding="utf-8")
        files.append(file)
    return files


@pytest.mark.usefixtures("book_with_a_mug")
def test_typescript_that_documents_show_compiles_and_works(stack: Stack, user: str, tmp_path: Path) -> None:
    tools = packages()
    words = {"https://api.example.com": stack.api_url, "ann": user, "ada": user}
    files = typescript(tmp_path, words)
    options = {
        "rootDir": "/",
        "noEmit": True,
        "noUnusedLocals": False,
        "typeRoots": [str(CLIENT / "node_modules" / "@types")],
    }
    config = {"extends": str(CLIENT / "tsconfig.json"), "compilerOptions": options, "include": ["*.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(config), encoding="utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    must(str(tools / "tsc"), "-p", str(tmp_path))
    (tmp_path / "points.ndjson").write_text(
        ndjson({"user_id": user, "as_of": datetime.now(UTC).date().isoformat(), "balance": 340})
    )
    printed("events", "import", str(tmp_path / "points.ndjson"))
    me = Api(stack, user, admin=False)
    until = time.monotonic() + BOOK_KNOWN_SECONDS
    while "mug" not in json.dumps(me.get("/v1/rewards")):
        assert time.monotonic() < until
        time.sleep(1)
    environment = {"STREAKLINE_URL": stack.api_url, "APP_USER": user}
    for file in files:
        must(
            *(str(tools / "esbuild"), str(file), "--bundle", "--platform=node", "--format=esm"),
            f"--outfile={file.with_suffix('.mjs')}",
        )
        groups = [PRODUCERS] if "StreaklineServer" in file.read_text() else []
        environment["STREAKLINE_TOKEN"] = bearer(stack, user, *groups)
        done = subprocess.run(
            ["node", str(file.with_suffix(".mjs"))],
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, f"{file.name}\n{done.stdout}\n{done.stderr[-3000:]}"
    assert len(files) == 4


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("```bash\necho a\n```\n```bash\nstreakline queue list --qeue\necho b\n```", "streakline queue list --qeue: status 2"),
        ("```python\nfrom local.analyst import frames\n```", "cannot import name 'frames'"),
        ("```bash\nfalse | true\n```", "a.md:1: status 1"),
        ('```bash\necho a\n```\n```text title="prints"\nb\n```', "a.md:4: b"),
        ("```bash\necho $UNSET\n```", "UNSET: unbound variable"),
        (".\n\n- a list:\n\n  ```bash\n  .venv/bin/streaklin\n  ```", "a.md:5: status 127"),
    ],
)  # fmt: skip
def test_what_does_not_work_is_found_with_its_place(
    stack: Stack, wrong: str, why: str, tmp_path: Path
) -> None:
    if wrong.startswith("```sql"):
        build_warehouse(stack)
    checkout(tmp_path)
    steps = blocks_of("a.md", wrong)
    done = run(script(steps, Premises(shell=ACTIVATE), tmp_path), tmp_path, stack, {})
    assert why in "\n".join([done.failed, *missing_lines(steps, done.printed)])
