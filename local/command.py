"""What all commands of `streakline` share: how they declare examples, options and the stack that they act on,
and how they print what came of it.

A command stands in the module that carries it out; local/cli.py lists all of them. This module imports
nothing that is slow, and neither may a module do that is read before its command is known.
"""

import functools
import inspect
import json
import re
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from rules.days import parse_moment

if TYPE_CHECKING:
    from local.stack import Stack

Function = Callable[..., Any]
WIDTH = 110


class Option(click.Option):
    """An option whose help ends with what holds if it is left out: `(default: 10)`, `(required)`."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what stands behind the help; a default in words stands as it is."""
        extra = super().get_help_extra(ctx)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        elif not self.is_flag and not self.required and extra.get("default", '""') == '""':
            extra["default"] = "none"
        return extra

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help."""
        record = super().get_help_record(ctx)
        return record and (record[0], re.sub(r"\s*\[([^\[\]]+)\]$", r" (\1)", record[1]).strip())


class Reader(click.ParamType[Any]):
    """Reads an option's text by a function; its ValueError is what the user is told."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return what the text says."""
        try:
            return self._read(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(f"{value}: {error}", param, ctx)


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("no day, such as 2027-01-31") from None


def _instant(text: str) -> datetime:
    return parse_moment(text).utc


DAY = Reader("day", _day)
INSTANT = Reader("instant", _instant)
FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FILE_OUT = click.Path(dir_okay=False, path_type=Path)
option = functools.partial(click.option, cls=Option, show_default=True)
_STACK = (
    option("--stack-name", metavar="NAME", help="a stack on AWS", show_default="the laptop cloud"),
    option("--region", help="where that stack is", show_default="as AWS_REGION and the profile say"),
)
_JSON = option("--json", "as_json", is_flag=True, help="print JSON, for programs")


def command(*examples: str) -> Callable[[Function], click.Command]:
    """Return what makes a function a command, whose help is its docstring and these examples.

    Its parameters and what it returns say the rest:
    - `stack`: the laptop cloud, or the stack on AWS that --stack-name and --region name; `stack_name` and
      `region`: these options as they are.
    - What it returns is printed: as text for people, or with --json. `as_json`: it prints by itself.
    """

    def decorate(function: Function) -> click.Command:
        signature = inspect.signature(function)
        takes, answers = signature.parameters.keys(), signature.return_annotation is not None

        @functools.wraps(function)
        def run(**given: Any) -> None:
            if "stack" in takes:
                given["stack"] = find_stack(given.pop("stack_name"), given.pop("region"))
            as_json = given.pop("as_json") if answers else False
            answer = function(**given)
            if answers:
                show(answer, as_json=as_json)

        made: Function = run
        for each in _STACK if takes & {"stack", "stack_name"} else ():
            made = each(made)
        if answers or "as_json" in takes:
            made = _JSON(made)
        lines = "\n".join(f"  streakline {example}" for example in examples)
        return click.command(
            epilog=f"\b\nExample{'s' if len(examples) > 1 else ''}:\n{lines}",
            context_settings={"max_content_width": WIDTH, "help_option_names": ["-h", "--help"]},
        )(made)

    return decorate


def find_stack(stack_name: str | None, region: str | None) -> "Stack":
    """Return the stack that a command acts on: the laptop's, unless one is named."""
    from local import stack

    if stack_name:
        return stack.find(stack_name, region)
    if region:
        raise click.UsageError("--region is of a stack on AWS: name that too, with --stack-name")
    return stack.load()


def show(answer: Any, *, as_json: bool) -> None:
    """Print what JSON can say: as JSON, or as text for people."""
    text = json.dumps(answer, indent=2)
    print(text if as_json else as_yaml(json.loads(text)).rstrip("\n") if answer else "nothing")


def as_yaml(document: Any) -> str:
    """Return a document as YAML, in its own order. What would command a terminal is escaped."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=WIDTH)
