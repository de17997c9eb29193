"""The command line as people meet it: help, examples, completion, usual mistakes, and how it ends."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from ingest.leads import sources
from local import cli
from local.command import show
from local.replay import SOURCES
from local.stack import Stack
from tests.support.shown_commands import commands, streakline
from tests.support.template import ROOT

GROUPS = sorted(name for name, each in cli.root.commands.items() if isinstance(each, click.Group))
# What takes long to import, and `--help` and completion do not need.
HEAVY = ("boto3", "botocore", "duckdb", "matplotlib", "numpy", "pyarrow", "sqlglot")
DEAD = Stack(
    "http://127.0.0.1:1",
    "http://127.0.0.1:1",
    "us-east-1",
    {"EngagementFailuresUrl": "http://127.0.0.1:1/q", "HookSecretPrefix": "hooks/", "LakeBucketName": "lake"},
    {name: name for name in ("RuleBooks", "UserStreaks", "WebhookEndpoints", "IdempotencyKeys")},
    "redis://127.0.0.1:1/0",
)


def ended(monkeypatch: pytest.MonkeyPatch, *words: str) -> tuple[int, str]:
    """The exit status of a command, and the sentence that it ends with, if it has one."""
    monkeypatch.setattr("sys.argv", ["streakline", *words])
    try:
        cli.main()
    except SystemExit as end:
        return (1, end.code) if isinstance(end.code, str) else (int(end.code or 0), "")
    return 0, ""


def help_of(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    assert ended(monkeypatch, *name.split(), "--help") == (0, "")
    return capsys.readouterr().out


def options_in(text: str) -> dict[str, str]:
    """Each option in a help, with what is said of it."""
    found: dict[str, str] = {}
    for line in text.partition("Options:")[2].partition("Example")[0].splitlines():
        if line.startswith("  -"):
            name = line.split()[0]
            found[name] = line
        elif line.strip():
            found[name] += f" {line.strip()}"
    return found


@pytest.mark.parametrize("name", sorted(commands()))
def test_each_help_has_an_example_that_is_taken_and_says_what_holds_if_an_option_is_left_out(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = help_of(name, monkeypatch, capsys)
    examples = [line.strip() for line in text.rpartition("Example")[2].splitlines()[1:]]
    assert [each for each in examples if not each.startswith(f"streakline {name}")] == []
    assert examples
    for each in examples:
        streakline(shlex.split(each.partition(" > ")[0])[1:])
    said, command = options_in(text), commands()[name]
    valued = [each for each in command.params if isinstance(each, click.Option) and not each.is_flag]
    assert [
        each.name
        for each in valued
        if not any(word in said[each.opts[0]] for word in ("(default: ", "(required)"))
    ] == []
    assert "\x1b" not in text


@pytest.mark.parametrize(
    "name", sorted(name for name, each in commands().items() if any(part.required for part in each.params))
)
def test_a_command_without_what_it_needs_says_what_that_is(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    needed = next(each for each in commands()[name].params if each.required)
    word = needed.opts[0] if isinstance(needed, click.Option) else "argument"
    code, sentence = ended(monkeypatch, *name.split())
    said = sentence + capsys.readouterr().err
    assert code == 2
    assert "Missing" in said
    assert word in said


def test_all_that_stands_at_the_top_is_listed_and_few() -> None:
    assert len(cli.root.commands) <= 26
    text = cli.root.get_help(click.Context(cli.root, info_name="streakline"))
    assert [name for name in cli.root.commands if f"\n  {name} " not in text] == []


@pytest.mark.parametrize("name", GROUPS)
def test_a_group_without_a_command_lists_its_own(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, name) == (2, "")
    group: Any = cli.root.commands[name]
    text = capsys.readouterr().err
    assert [each for each in group.commands if f"\n  {each} " not in text] == []


def test_the_version_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended(monkeypatch, "--version") == (0, "")
    assert capsys.readouterr().out.startswith("streakline 0.")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["stat"], "No such command 'stat'. Did you mean 'status'?"),
        (["rules", "publsh", "book.yaml"], "No such command 'publsh'. Did you mean 'publish'?"),
        (["night", "run", "--dryrun"], "No such option '--dryrun'. Did you mean '--dry-run'?"),
        (["rules", "check", "nowhere/book.yaml"], "File 'nowhere/book.yaml' does not exist"),
        (["events", "replay", "nowhere.csv"], "Path 'nowhere.csv' does not exist"),
        (["token"], "Missing option '--user'"),
        (["night", "run", "--from", "yesterday", "--to", "2026-11-01"], "yesterday: no day, such as"),
        (["plan", "--daily-actives", "-5"], "-5.0 is not in the range x>=0"),
        (["sql", "SELECT 1", "--on", "sea"], "'sea' is not one of 'warehouse', 'lake'"),
        (["report", "--stack-name", "live"], "No such option '--stack-name'"),
    ],
)
def test_a_mistake_is_a_sentence_with_the_way_to_the_help(
    words: list[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, *words) == (2, "")
    text = capsys.readouterr().err
    assert text.startswith(f"streakline: {text[12:]}")
    assert said in text
    assert "--help`)\n" in text
    assert text.count("\n") == 1


def test_the_sources_of_hooks_are_named_in_the_help_and_where_one_is_mistaken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("add", "rotate", "remove"):
        told = options_in(help_of(f"hook {command}", monkeypatch, capsys))["--source"]
        assert [name for name in sources.names() if name not in told] == []
        words = ("hook", command, "--organization", "shop", "--source", "form")
        status, _ = ended(monkeypatch, *words)
        mistake = capsys.readouterr().err
        assert (status, [name for name in sources.names() if name not in mistake]) == (2, [])


@pytest.mark.parametrize(
    "words",
    [
        ["status", "--region", "eu-west-1"],
        ["person", "export", "--out", "x.zip"],
        ["person", "erase", "--user", "ann", "--lead", "7"],
        ["person", "erase", "--user", "ann", "--organization", "shop"],
        ["night", "run", "--from", "2026-11-01"],
        ["night", "rebuild", "--entity", "ledger"],
        ["webhook", "replay", "--user", "ann"],
        *(["events", "replay", "README.md", "--via", "queue", "--format", kind] for kind in SOURCES),
        *(
            ["events", "replay", "README.md", "--format", "orders", "--via", via]
            for via in ("kinesis", "both")
        ),
    ],
)
def test_options_that_do_not_go_together_are_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("local.stack.load", lambda: DEAD)
    assert ended(monkeypatch, *words) == (2, "")
    assert "--" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["queue", "list"],
        ["hook", "list", "--json"],
        ["rules", "list"],
        ["webhook", "list"],
    ],
)
def test_a_cloud_that_is_dead_is_a_sentence(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.stack.load", lambda: DEAD)
    monkeypatch.setattr("botocore.endpoint.time.sleep", lambda _: None)
    status, said = ended(monkeypatch, *words)
    assert status == 1
    assert said.startswith("streakline: the laptop cloud does not answer: `streakline status` says why (")
    assert "object at 0x" not in said
    assert "\n" not in said


def test_no_cloud_at_all_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("local.stack.STACK", tmp_path / "stack.json")
    assert ended(monkeypatch, "queue", "list") == (
        1,
        "no laptop cloud is up: run `streakline up` first, or name a stack on AWS: --stack-name",
    )
    assert ended(monkeypatch, "status", "--json")[0] == 1
    assert json.loads(capsys.readouterr().out)["is_well"] is False


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (KeyboardInterrupt(), 130, ""),
        (FileNotFoundError(2, "No such file or directory", "a.json"), 1, "a.json: No such file or directory"),
        (OSError(28, "No space left on device"), 1, "No space left on device"),
        (RuntimeError("three were left"), 1, "three were left"),
        (ValueError("no such day"), 1, "no such day"),
    ],
)
def test_how_a_command_ends(
    error: BaseException, status: int, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down() -> None:
        raise error

    monkeypatch.setattr("local.cloud.laptop_cloud.down", down)
    assert ended(monkeypatch, "down") == (status, said and f"streakline: {said}")


def test_a_fault_of_the_program_is_no_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("local.cloud.laptop_cloud.down", {}.popitem)
    with pytest.raises(KeyError):
        ended(monkeypatch, "down")


@pytest.mark.parametrize("words", [["plan", "--daily-actives", "10", "--json"], ["rules", "schema"]])
def test_what_a_program_reads_is_json(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert ended(monkeypatch, *words) == (0, "")
    assert json.loads(capsys.readouterr().out)


def test_a_book_to_begin_with_is_one_and_overwrites_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "book.yaml"
    assert ended(monkeypatch, "rules", "init", str(file)) == (0, "")
    assert ended(monkeypatch, "rules", "check", str(file)) == (0, "")
    status, said = ended(monkeypatch, "rules", "init", str(file))
    assert (status, said) == (1, f"streakline: {file}: File exists")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ([], "nothing\n"),
        ({"url": "http://x", "ends": [None]}, "url: http://x\nends:\n- null\n"),
        ([{"reason": "\x1b[2Jgone"}], '- reason: "\\e[2Jgone"\n'),
    ],
)
def test_people_read_text_in_which_nothing_commands_their_terminal(
    answer: Any, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    show(answer, as_json=False)
    assert capsys.readouterr().out == text
    show(answer, as_json=True)
    assert json.loads(capsys.readouterr().out) == answer


@pytest.mark.parametrize(
    ("words", "completed"),
    [
        ("streakline st", ["status"]),
        ("streakline night run --d", ["--dry-run"]),
        ("streakline sql --on ", ["warehouse", "lake"]),
    ],
)
def test_the_shell_completes(words: str, completed: list[str]) -> None:
    told = child(
        "from local import cli; cli.main()",
        _STREAKLINE_COMPLETE="bash_complete",
        COMP_WORDS=words,
        COMP_CWORD=str(words.count(" ")),
    )
    assert [line.partition(",")[2] for line in told.splitlines()] == completed


@pytest.mark.parametrize("words", ["--help", "--version", "rules --help", "nonsense"])
def test_what_needs_no_command_imports_nothing_slow(words: str) -> None:
    told = child(
        "import sys; from local import cli\n"
        f"sys.argv = ['streakline', *{words.split()}]\n"
        "try: cli.main()\nexcept SystemExit: pass\n"
        f"print('loaded', *({HEAVY} & sys.modules.keys()))".replace(str(HEAVY), str(set(HEAVY)))
    )
    assert told.splitlines()[-1].strip() == "loaded"


def child(script: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout
