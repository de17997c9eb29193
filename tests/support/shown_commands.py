"""Holds commands that a document shows against what takes them, without running them.

`streakline` has its own parser; `aws` the service models that the AWS CLI is made of; `make` and `sam` the Makefile and
the template. The shell takes a block apart: it runs, and each command in it notes its words instead of acting.
"""

import ast
import copy
import functools
import inspect
import json
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, cast

import botocore.session
import click
import jmespath
from botocore import xform_name
from botocore.model import OperationModel, Shape
from botocore.validate import ParamValidator

from local import cli
from local.paths import WAREHOUSE
from tests.support.template import ROOT, template

Words = Sequence[str]
END, BETWEEN = "\x1e", "\x1f"
PLACEHOLDER = re.compile(r"[A-Z][A-Z_]*…?")
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*")
INSTANT = "2026-03-01T00:00:00Z"
VALUES = {"DAY": "2026-03-01", "INSTANT": INSTANT, "PAST": INSTANT, "N": "1", "NUMBER": "1"}
SECONDS_MAX = 20


class WrongCommand(Exception):
    """A command that would be refused; the message says why."""


# ---- the shell ------------------------------------------------------------------------------------


def words_of(text: str, folder: Path) -> list[list[str]]:
    """The words of each command in a shell's text, as bash splits them; raises WrongCommand if bash refuses it.

    The text is carried out in `folder` with commands that only note their words, and nothing else on the PATH.
    jq answers with a name, so that loops over names are gone through once.
    """
    notes = folder / "noted"
    notes.write_text("", encoding="utf-8")
    noting = "\n".join(
        f"{name}() {{ printf '%s\\x1f' {name} \"$@\" >> {shlex.quote(str(notes))}; "
        f"printf '\\x1e' >> {shlex.quote(str(notes))}; {says}; }}"
        for name, says in {**dict.fromkeys(CHECKS, ":"), "jq": "echo NAME"}.items()
    )
    done = subprocess.run(
        ["/bin/bash", "--noprofile", "--norc", "-c", f"{noting}\nset -euo pipefail\n{text}"],
        cwd=folder,
        env={"PATH": "/nowhere", "bucket": "BUCKET"},
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS_MAX,
    )
    if done.returncode:
        raise WrongCommand(done.stderr.strip() or f"status {done.returncode}")
    found = notes.read_text(encoding="utf-8").split(END)[:-1]
    return [words for each in found if (words := each.split(BETWEEN)[:-1])[0] != "jq"]


def problems(text: str, folder: Path) -> list[str]:
    """What is wrong with the commands of a shell's text: a line for each, or nothing."""
    try:
        commands = words_of(text, folder)
    except WrongCommand as wrong:
        return [str(wrong)]
    found = [] if commands else ["no command that is known"]
    for words in commands:
        try:
            CHECKS[words[0]](words[1:])
        except WrongCommand as wrong:
            found.append(f"{shlex.join(words)}: {wrong}")
    return found + [each for line in text.splitlines() for each in comment_problems(line)]


def comment_problems(line: str) -> Iterator[str]:
    """Yield the options in a command's comment that neither it has, nor a command which the comment names."""
    command, _, comment = line.partition(" # ")
    named = {each for each in leaves() if set(each.split()) & set(re.findall(r"[\w-]+", command))}
    named |= {each for each in leaves() if each.split()[0] in re.findall(r"(?<!-)\b[\w-]+", comment)}
    if re.match(r"\s*streakline ", command):
        known = {option for each in named for option in leaves()[each]}
        yield from (f"{line}: no {each} here" for each in OPTION.findall(comment) if each not in known)


# ---- streakline -----------------------------------------------------------------------------------


def groups() -> set[str]:
    """The names at the top."""
    return set(cli.root.commands)


@cache
def commands() -> dict[str, click.Command]:
    """Each command that takes no further command, by its words: `rules publish`."""
    found: dict[str, click.Command] = {}

    def walk(group: click.Group, words: tuple[str, ...]) -> None:
        for name, each in group.commands.items():
            if isinstance(each, click.Group):
                walk(each, (*words, name))
            else:
                found[" ".join((*words, name))] = each.load() if isinstance(each, cli.Lazy) else each

    walk(cli.root, ())
    return found


@cache
def leaves() -> dict[str, frozenset[str]]:
    """The options of each command that takes no further command, by its words."""
    return {
        name: frozenset(option for each in command.params for option in (*each.opts, *each.secondary_opts))
        for name, command in commands().items()
    }


class _Relaxed(click.ParamType[Any]):
    """Takes what a sentence says by a PLACEHOLDER."""

    name = "relaxed"

    def __init__(self, inner: click.ParamType[Any]) -> None:
        self._inner = inner

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, str) and PLACEHOLDER.fullmatch(value):
            return value
        return self._inner.convert(value, param, ctx)


def _relaxed(parameter: click.Parameter, *, whole: bool) -> click.Parameter:
    """A parameter that asks for no file to be there; unless it is a whole command, it may be left out, too."""
    made = copy.copy(parameter)
    if isinstance(made.type, click.Path):
        made.type = click.Path()
    if not whole:
        made.required = False
        if isinstance(made, click.Option) and not made.is_flag:
            made._flag_needs_value, made.flag_value = True, "VALUE"
        made.type = _Relaxed(made.type)
    return made


def streakline(words: Words, *, whole: bool = True) -> None:
    """Raise WrongCommand if the command line does not take these words.

    whole: False where a sentence speaks of a command, and need not name all that it must have.
    """
    try:
        context = click.Context(cli.root, info_name="streakline")
        command, rest = cast("click.Command", cli.root), list(words)
        while isinstance(command, click.Group) and rest and not rest[0].startswith("-"):
            _, found, rest = command.resolve_command(context, rest)
            command = cast("click.Command", found)
        if isinstance(command, click.Group):
            if rest or whole:
                command.make_context("streakline", rest)
            return
        relaxed = copy.copy(command)
        relaxed.params = [_relaxed(each, whole=whole) for each in command.params]
        relaxed.make_context("streakline", rest)
    except click.ClickException as refused:
        raise WrongCommand(refused.format_message()) from None
    except click.exceptions.Exit:
        return


def options_together(words: Words) -> None:
    """Raise WrongCommand unless one command has all of these options."""
    asked = {each.partition("=")[0] for each in words if each.startswith("--")}
    if not any(asked <= known for known in leaves().values()):
        raise WrongCommand(f"no command has {' and '.join(sorted(asked))}")


# ---- aws, sam, make -------------------------------------------------------------------------------

GLOBAL = {"--region", "--profile", "--output", "--query", "--no-cli-pager", "--max-items", "--page-size"}
# What the AWS CLI has beside the services' own operations.
OF_THE_CLI = {
    "s3": {
        **{name: {"--recursive"} for name in ("ls", "rm")},
        **{name: {"--recursive", "--exclude", "--include"} for name in ("cp", "mv", "sync")},
        **{name: {"--force"} for name in ("mb", "rb")},
    },
    "logs": {"tail": {"--since", "--follow", "--filter-pattern", "--format"}},
}


def aws(words: Words, *, whole: bool = True) -> None:
    """Raise WrongCommand if the AWS CLI does not take these words; whole: as of `streakline`."""
    service, operation, *rest = [*words, "", ""][: max(2, len(words))]
    given = _values(rest)
    if "--query" in given:
        _jmespath(given["--query"])
    if operation in OF_THE_CLI.get(service, ()):
        _only_known(given, OF_THE_CLI[service][operation])
        return
    model = _operation(service, operation)
    shape = model.input_shape
    members = {f"--{xform_name(name, '-')}": each for name, each in shape.members.items()} if shape else {}
    switches = {f"--no-{name[2:]}": each for name, each in members.items() if each.type_name == "boolean"}
    _only_known(given, {*members, *switches})
    if whole and shape:
        needed = {f"--{xform_name(each, '-')}" for each in shape.required_members}
        if lacking := needed - given.keys():
            raise WrongCommand(f"{', '.join(sorted(lacking))} must be given")
    for name, values in given.items():
        if name in members:
            _value(name, values, members[name])


def _values(words: Words) -> dict[str, list[str]]:
    """The values of each option; what stands before the first one is under nothing."""
    found: dict[str, list[str]] = {"": []}
    name = ""
    for word in words:
        if word.startswith("--"):
            name, found[word] = word, []
        else:
            found[name].append(word)
    return found


def _only_known(given: dict[str, list[str]], known: set[str]) -> None:
    if unknown := given.keys() - known - GLOBAL - {""}:
        raise WrongCommand(f"unknown: {', '.join(sorted(unknown))}")


def _jmespath(values: list[str]) -> None:
    try:
        jmespath.compile(" ".join(values))
    except jmespath.exceptions.JMESPathError as error:
        raise WrongCommand(f"--query: {error}") from None


@cache
def _operation(service: str, operation: str) -> OperationModel:
    session = botocore.session.get_session()
    if service == "s3api":
        service = "s3"
    if service not in session.get_available_services():
        raise WrongCommand(f"AWS has no service {service!r}")
    model = session.get_service_model(service)
    for name in model.operation_names:
        if xform_name(name, "-") == operation:
            return model.operation_model(name)
    raise WrongCommand(f"{service} has no operation {operation!r}")


def _value(name: str, values: list[str], shape: Shape) -> None:
    text = " ".join(values)
    if shape.type_name in ("structure", "map", "list") and text[:1] in ("{", "["):
        try:
            report = ParamValidator().validate(json.loads(text), shape)
        except ValueError as error:
            raise WrongCommand(f"{name}: no JSON: {error}") from None
        if report.has_errors():
            raise WrongCommand(f"{name}: {report.generate_report()}")
    elif not values and shape.type_name != "boolean":
        raise WrongCommand(f"{name} has no value")
    elif (
        (allowed := getattr(shape, "enum", None)) and text not in allowed and not PLACEHOLDER.fullmatch(text)
    ):
        raise WrongCommand(f"{name}: {text!r} is none of {', '.join(allowed)}")


OF_SAM = {"--stack-name", "--region", "--config-env", "--guided", "--parameter-overrides"}


def sam(words: Words, **_: bool) -> None:
    """Raise WrongCommand for a command or an option that we do not use, or a parameter that is not the template's."""
    command, *rest = words or [""]
    if command not in ("build", "deploy", "delete"):
        raise WrongCommand(f"no command {command!r}")
    given = _values(rest)
    _only_known(given, OF_SAM)
    names = {each.partition("=")[0] for each in given.get("--parameter-overrides", ())}
    if unknown := names - template()["Parameters"].keys():
        raise WrongCommand(f"template.yaml has no parameter {', '.join(sorted(unknown))}")


def make(words: Words, **_: bool) -> None:
    """Raise WrongCommand for a target that the Makefile does not have."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for word in words:
        name, is_variable, _value = word.partition("=")
        if not re.search(
            rf"^{re.escape(name)} *:?=" if is_variable else rf"^{re.escape(name)}:", makefile, re.MULTILINE
        ):
            raise WrongCommand(f"the Makefile has no {name}")


def pytest(words: Words, **_: bool) -> None:
    """Raise WrongCommand for tests that are not there."""
    if lacking := [each for each in words if each.startswith("tests/") and not (ROOT / each).exists()]:
        raise WrongCommand(f"there is no {', '.join(lacking)}")


def python(words: Words, **_: bool) -> None:
    """Raise WrongCommand for a module, a benchmark or a file of ours that is not there."""
    names = [each.replace(".", "/") for each in words[1:2] if words[0] == "-m"]
    if words[:2] == ["-m", "bench"]:
        names += [f"bench/{each.replace('.', '/')}" for each in words[2:3]]
    paths = [ROOT / each for each in (*names, *words[:1]) if "/" in each]
    if lacking := [str(each) for each in paths if not (each.exists() or each.with_suffix(".py").exists())]:
        raise WrongCommand(f"there is no {', '.join(lacking)}")


def duckdb(words: Words, **_: bool) -> None:
    """Raise WrongCommand for another file than the laptop's warehouse."""
    if words[-1:] != [str(WAREHOUSE.relative_to(ROOT))]:
        raise WrongCommand("no such database")


def install(words: Words, whole: bool = True) -> None:
    """Check that an installer is given a package that `make dist` makes (tests/integration/test_dist.py)."""
    if whole and words[-1] not in PACKAGES:
        raise WrongCommand(f"{words[-1]} is none of {', '.join(PACKAGES)}")


PACKAGES = ("./dist/streakline_client-*.whl", "./dist/streakline-*.tgz", "./dist/streakline-*.whl")
CHECKS: dict[str, Callable[..., None]] = {
    **dict.fromkeys(("npm", "pip", "uv"), install),
    "streakline": streakline,
    "aws": aws,
    "sam": sam,
    "make": make,
    "pytest": pytest,
    "python": python,
    "duckdb": duckdb,
}


# ---- sentences ------------------------------------------------------------------------------------


def span_problem(span: str) -> str | None:
    """What is wrong with code in a sentence that is a command, or some options of one; None: nothing, or it is neither."""
    try:
        for words in _alternatives(span):
            _check_span(words)
    except WrongCommand as wrong:
        return f"`{span}`: {wrong}"
    return None


def _check_span(words: Words) -> None:
    name = words[0] if len(words) > 1 or (words[:1] and words[0].startswith("--")) else ""
    if name in CHECKS:
        CHECKS[name](words[1:], whole=False)
    elif name.startswith("--") and name not in OF_SAM and not name.startswith("--streakline-"):
        options_together(words)
    elif name in groups() and len(words) > 1 and name != "import":  # a line of Python or TypeScript
        streakline(words, whole=False)


def _alternatives(span: str) -> Iterator[list[str]]:
    """Yield the commands that a span names: `rules check | diff` are two, and so are `up, down`."""
    text = re.sub(r"(?:\.\.\.|…)", " ", span)
    if not re.match(r"(?:--|[a-z-]+(?: |$))", text):
        return
    text = re.sub(r"\[([^\]]*)\]", r"\1", text) if not text.startswith("aws ") else text
    try:
        words = shlex.split(text.partition(" > ")[0])
    except ValueError as error:
        raise WrongCommand(str(error)) from None
    words = [VALUES.get(each, each) for each in words]
    heads: list[str] = []
    others: list[str] = []
    for place, word in enumerate(words):
        if word == "|":
            continue
        if place and (words[place - 1] == "|" or words[place - 1].endswith(",")):
            others.append(word.rstrip(","))
        else:
            heads.append(word.rstrip(","))
    yield heads
    yield from ([*heads[:-1], each] for each in others)


# ---- Python ---------------------------------------------------------------------------------------


def python_problems(text: str) -> list[str]:
    """What is wrong with Python that is not run: imports that fail, and calls of what it imports that do not fit."""
    tree, names = ast.parse(text), dict[str, Any]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            try:
                exec(compile(ast.Module([node], []), "document", "exec"), names)
            except ImportError as error:
                return [str(error)]
    return [
        f"{ast.unparse(node)}: {problem}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (problem := _call_problem(node, names))
    ]


def _call_problem(call: ast.Call, names: dict[str, Any]) -> str | None:
    parts = ast.unparse(call.func).split(".")
    if parts[0] not in names:
        return None
    try:
        found = functools.reduce(getattr, parts[1:], names[parts[0]])
        inspect.signature(found).bind(
            *call.args, **{each.arg: each.value for each in call.keywords if each.arg}
        )
    except (AttributeError, TypeError) as error:
        return str(error)
    return None
