"""What all commands of `streakline` share: how they declare examples, options and their stack, and print.

A command stands in the module that carries it out; local/cli.py lists all of them. This module imports
nothing slow, because it is imported before it is known which command runs.
"""

import functools
import inspect
import json
import math
import re
from collections.abc import Callable, Mapping
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
EMPTY_DEFAULT = '""'  # click shows an empty default so


class Option(click.Option):
    """An option whose help ends with what holds if it is left out: `(default: 10)`, `(required)`."""

    def get_help_extra(self, ctx: click.Context) -> Any:
        """Return what click adds behind the help: the default, which may be words, or `none`."""
        extra = super().get_help_extra(ctx)
        extra.pop("range", None)
        if isinstance(self.show_default, str):
            extra["default"] = self.show_default
        elif not self.is_flag and not self.required and extra.get("default", EMPTY_DEFAULT) == EMPTY_DEFAULT:
            extra["default"] = "none"
        return extra

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help, with round brackets instead of click's square ones."""
        record = super().get_help_record(ctx)
        return record and (record[0], re.sub(r"\s*\[([^\[\]]+)\]$", r" (\1)", record[1]).strip())


class Reader(click.ParamType[Any]):
    """An option's type whose text a function reads; the user gets the text of its ValueError."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the value of an option's text; a default is no text, and stays as it is."""
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
STACK_OPTIONS = (
    option("--stack-name", metavar="NAME", help="a stack on AWS", show_default="the laptop cloud"),
    option("--region", help="where that stack is", show_default="as AWS_REGION and the profile say"),
)


def _parameters(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    for each in values:
        if "=" not in each:
            raise click.BadParameter(f"{each} is not NAME=VALUE")
    return dict(each.split("=", 1) for each in values)


def parameters_option(text: str) -> Callable[[Function], Function]:
    """Return the option of parameters of the template, `parameters`: values by name."""
    return option(
        *("--parameter", "parameters"), multiple=True, callback=_parameters, metavar="NAME=VALUE", help=text
    )


JSON_OPTION = option("--json", "as_json", is_flag=True, help="print JSON, for programs")


def command(*examples: str) -> Callable[[Function], click.Command]:
    """Return a decorator that makes a function a command; its help is the docstring and these examples.

    The function's signature says which options are added:
    - `stack`: it gets the laptop cloud, or the stack on AWS that --stack-name and --region name.
    - `stack_name` and `region`: it gets these options as they are.
    - A return annotation other than None: the answer is printed, as text for people, or with --json as JSON.
    - `as_json`: it gets this option, and prints by itself.
    """

    def decorate(function: Function) -> click.Command:
        signature = inspect.signature(function)
        parameters = signature.parameters.keys()
        has_answer = signature.return_annotation is not None

        @functools.wraps(function)
        def run(**values: Any) -> None:
            if "stack" in parameters:
                values["stack"] = find_stack(values.pop("stack_name"), values.pop("region"))
            as_json = values.pop("as_json") if has_answer else False
            answer = function(**values)
            if has_answer:
                show(answer, as_json=as_json)

        callback: Function = run
        if parameters & {"stack", "stack_name"}:
            for add_option in STACK_OPTIONS:
                callback = add_option(callback)
        if has_answer or "as_json" in parameters:
            callback = JSON_OPTION(callback)
        lines = "\n".join(f"  streakline {example}" for example in examples)
        return click.command(
            # \b keeps click from wrapping the lines of the examples into one paragraph.
            epilog=f"\b\nExample{'s' if len(examples) > 1 else ''}:\n{lines}",
            context_settings={"max_content_width": WIDTH, "help_option_names": ["-h", "--help"]},
        )(callback)

    return decorate


def find_stack(stack_name: str | None, region: str | None) -> "Stack":
    """Return the stack that a command acts on: the laptop's, unless one is named.

    Raises click.UsageError if only a region is named.
    """
    from local import stack  # imports boto3, which is slow

    if stack_name:
        return stack.find(stack_name, region)
    if region:
        raise click.UsageError("--region is of a stack on AWS: name that too, with --stack-name")
    return stack.load()


def show(answer: Any, *, as_json: bool) -> None:
    """Print an answer that JSON can express: as JSON, or as YAML for people, where no answer is `nothing`."""
    text = json_text(answer)
    if as_json:
        print(text)
    else:
        print(as_yaml(json.loads(text)).rstrip("\n") if answer else "nothing")


def json_text(answer: Any) -> str:
    """Return an answer as JSON. It has no NaN and no infinity: they become null. Dates become texts."""
    return json.dumps(_finite(answer), indent=2, default=str, allow_nan=False)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {name: _finite(part) for name, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def as_yaml(document: Any) -> str:
    """Return a document as YAML, in its own order. Signs that would control a terminal are escaped."""
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=WIDTH)
