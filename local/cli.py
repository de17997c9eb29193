"""`streakline`: the map of its commands, and how it ends.

Each command stands in the module that carries it out, and is imported when it is called: some import for a
second, and `--help` and completion are to be quick.
"""

import io
import os
import select
import signal
import sys
import threading
from collections.abc import Mapping
from importlib import import_module
from types import FrameType
from typing import NoReturn

import click
from click.shell_completion import shell_complete

from local.command import WIDTH
from rules.parts import said

PROGRAM = "streakline"
COMPLETE = "_STREAKLINE_COMPLETE"


class Lazy(click.Command):
    """A command that is not imported yet: its line in the list, and where it stands (`module:name`)."""

    def __init__(self, target: str, line: str) -> None:
        super().__init__(target, short_help=line)
        self._target = target

    def load(self) -> click.Command:
        """Import the command."""
        module, _, name = self._target.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command


class Group(click.Group):
    """Commands under a noun. They are listed as they are declared, at the top in sections."""

    def __init__(
        self, line: str, *parts: Mapping[str, click.Command], sections: tuple[str, ...] = ("Commands",)
    ) -> None:
        commands = {name: command for part in parts for name, command in part.items()}
        super().__init__(PROGRAM, commands, help=line, no_args_is_help=True)
        self.context_settings = {"max_content_width": WIDTH, "help_option_names": ["-h", "--help"]}
        self._sections = dict(zip(sections, parts, strict=True))

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of their declaration."""
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write each section."""
        width = max(map(len, self.commands))
        for title, part in self._sections.items():
            with formatter.section(title):
                rows = [
                    (name.ljust(width), command.get_short_help_str(WIDTH)) for name, command in part.items()
                ]
                formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that is called, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, command.load() if isinstance(command, Lazy) else command, rest


RUN = {
    "up": Lazy("local.cloud.laptop_cloud:up_command", "Start the laptop cloud and deploy to it"),
    "down": Lazy("local.cloud.laptop_cloud:down_command", "Stop it"),
    "preflight": Lazy("local.operate.preflight:preflight", "What of a deployment to AWS would fail"),
    "status": Lazy("local.operate.status:status", "Whether all is well: what runs, what waits and how long"),
    "logs": Lazy("local.operate.logs:logs", "What a function has logged"),
    "smoke": Lazy("local.smoke.smoke_command:smoke_command", "Prove a deployment, each part once"),
    "demo": Lazy("local.demo:demo_command", "Up, replay, check, show"),
}
USE = {
    "events": Group(
        "Send events, and take in those of another system.",
        {
            "replay": Lazy("local.replay:replay_command", "Send a file, or a history of git, as an admin"),
            "import": Lazy("local.move_in.import_command:import_command", "Take in another system's"),
            "verify": Lazy("local.verify:verify", "Hold profiles against an independent calculation"),
        },
    ),
    "rules": Group(
        "The book of rules: write, compare, publish.",
        {
            "init": Lazy("local.rules_command:init", "Write a book to begin with"),
            "schema": Lazy("local.rules_command:schema", "JSON Schema of a book, for editors"),
            "check": Lazy("local.rules_command:check_command", "What is wrong with a book, by line"),
            "diff": Lazy("local.rules_command:diff", "How a book differs from the one in force"),
            "what-if": Lazy("local.what_if.what_if_command:what_if_command", "What it would have led to"),
            "publish": Lazy("local.rules_command:publish_command", "Put it into force"),
            "rerate": Lazy("local.rerate:rerate_command", "Judge past events by it"),
            "show": Lazy("local.rules_command:show_command", "The book in force"),
            "list": Lazy("local.rules_command:list_command", "All versions, the newest first"),
            "recompute": Lazy("local.rules_command:recompute_command", "Compare all points with the ledger"),
        },
    ),
    "token": Lazy("local.sign_in:token_command", "An access token of a user"),
    "page": Lazy("local.sign_in:page_command", "The web page's address, with a user signed in"),
    "webhook": Group(
        "Webhooks that the service sends: endpoints, and sending again.",
        {
            "list": Lazy("local.operate.outgoing:list_endpoints", "Endpoints, and what they did not take"),
            "replay": Lazy("local.operate.outgoing:replay", "Send again"),
        },
    ),
    "person": Group(
        "What is known of a person: export, erase, prove.",
        {
            "export": Lazy("local.operate.persons:export_command", "All of it, as a ZIP of JSON and CSV"),
            "erase": Lazy("local.operate.persons:erase_command", "Erase it, and wait for the certificate"),
            "lift": Lazy("local.operate.persons:lift", "Let an erased user's id be used anew"),
            "certificate": Lazy("local.operate.persons:certificate_command", "Check that one is genuine"),
            "who": Lazy("local.operate.persons:who_command", "Which users the logs mean"),
        },
    ),
}
ASK = {
    "sql": Lazy("local.analyst.sql:sql", "Ask the warehouse or the lake; without a query, a shell"),
    "warehouse": Group(
        "The warehouse's models, for other tools.",
        {"dbt": Lazy("local.analyst.dbt_package:dbt_command", "Write them as a package of dbt")},
    ),
    "report": Lazy("local.operate.html_report:report", "One HTML file of plots"),
    "plan": Lazy("local.plan.plan_command:plan", "What each size costs, and what ends first"),
}
REPAIR = {
    "night": Group(
        "The nightly run, and days of the lake, made by hand.",
        {
            "run": Lazy("local.operate.nightly_run:run_command", "Load, compare and repair now"),
            "rebuild": Lazy("local.operate.nightly_run:rebuild_command", "Days of the lake, from raw"),
            "backfill": Lazy("local.operate.nightly_run:backfill_command", "Many days at once, by Spark"),
        },
    ),
    "queue": Group(
        "Failure queues: what could not be processed, and why.",
        {
            "list": Lazy("local.operate.redrive:list_command", "What waits, with ids and reasons"),
            "redrive": Lazy("local.operate.redrive:redrive_command", "Send it to its consumer again"),
            "discard": Lazy("local.operate.redrive:discard_command", "Give one message up"),
            "discarded": Lazy("local.operate.redrive:discarded_command", "What was given up, and why"),
            "take-back": Lazy("local.operate.redrive:take_back_command", "Put one into its queue again"),
        },
    ),
    "amnesty": Group(
        "Give back what an outage cost.",
        {
            "declare": Lazy("local.amnesty_command:declare", "Say which dates are no misses, and apply it"),
            "apply": Lazy("local.amnesty_command:apply_command", "Give it to all whom it concerns"),
            "revoke": Lazy("local.amnesty_command:revoke", "Take it back"),
            "list": Lazy("local.amnesty_command:list_command", "All amnesties"),
        },
    ),
    "proof": Group(
        "Proofs of ledger entries against the published root.",
        {
            "make": Lazy("local.prove:make", "A small file that proves an entry"),
            "check": Lazy("local.prove:check_command", "Verify it by the file and a published root"),
            "audit": Lazy("local.prove:audit_command", "Table, lake and warehouse against each other"),
        },
    ),
    "restore": Lazy("local.restore:restore", "What tables had before an instant, from the lake"),
    "key": Group(
        "Keys: of your own sign-in; of fingerprints and time receipts, which are replaced step by step.",
        {
            "sign-in": Lazy("local.sign_in_key:sign_in_command", "Make one for your users' tokens"),
            "show": Lazy("local.operate.fingerprint_keys:show_keys", "How far a replacement is"),
            "announce": Lazy("local.operate.fingerprint_keys:announce", "Make the next key"),
            "promote": Lazy("local.operate.fingerprint_keys:promote", "Use it"),
            "retire": Lazy("local.operate.fingerprint_keys:retire", "Forget the older ones"),
        },
    ),
    "region": Group(
        "Two regions: which one writes.",
        {
            "status": Lazy("local.regions:status_command", "Who writes, and what is on its way"),
            "start": Lazy("local.regions:start", "Let the first region begin"),
            "promote": Lazy("local.regions:promote", "Make the stack's region the writer"),
            "return": Lazy("local.regions:return_command", "Let it follow the writer again"),
        },
    ),
}
EPILOG = f"""\b
Example:
  streakline up && streakline page --user ann
\b
Completion of commands, here for bash (zsh_source and fish_source are there, too):
  eval "$({COMPLETE}=bash_source streakline)"
"""
SECTIONS: dict[str, Mapping[str, click.Command]] = {
    "Run it": RUN,
    "Use it": USE,
    "Ask it": ASK,
    "Look after it": REPAIR,
}
for _commands in said("commands"):
    for _section, _groups in _commands.items():
        _of_part = {
            name: Group(line, {word: Lazy(*target) for word, target in words.items()})
            for name, (line, words) in _groups.items()
        }
        SECTIONS[_section] = {**SECTIONS[_section], **_of_part}
root = Group(
    "Commands of a laptop cloud or, with `--stack-name`, of a stack on AWS.",
    *SECTIONS.values(),
    sections=tuple(SECTIONS),
)
root.epilog = EPILOG
root.params.append(
    click.Option(
        ["--version"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=lambda context, _, is_asked: _version(context) if is_asked else None,
        help="Show the version and exit.",
    )
)


def _version(context: click.Context) -> NoReturn:
    from importlib.metadata import version

    print(f"streakline {version(PROGRAM)}")
    context.exit()


def main() -> None:
    """Run a command; an error that somebody can act on ends it with one sentence.

    Status: 0; 1 for what went wrong; 2 for a command line that is not taken; 130 after Ctrl-C; 141 if nobody
    reads the output any more; 143 after SIGTERM.
    """
    _prepare_streams()
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):  # at an exception's end, temporary files are removed
            signal.signal(number, _end_by_signal)
    if instruction := os.environ.get(COMPLETE):
        sys.exit(shell_complete(root, {}, PROGRAM, COMPLETE, instruction))
    try:
        with root.make_context(PROGRAM, sys.argv[1:]) as context:
            root.invoke(context)
        sys.stdout.flush()
    except click.exceptions.Exit as ended:
        sys.exit(ended.exit_code)
    except click.ClickException as refused:
        _refuse(refused)
    except (KeyboardInterrupt, click.Abort):
        print(file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        _end_quietly()
    except Exception as error:
        if (text := _sentence(error)) is None:
            raise
        sys.exit(f"{PROGRAM}: {text}")


def _refuse(refused: click.ClickException) -> NoReturn:
    if isinstance(refused, click.exceptions.NoArgsIsHelpError):
        print(refused.format_message(), file=sys.stderr)
        sys.exit(refused.exit_code)
    context = refused.ctx if isinstance(refused, click.UsageError) else None
    where = f" (see `{context.command_path} --help`)" if context else ""
    print(f"{PROGRAM}: {refused.format_message().rstrip('.')}{where}", file=sys.stderr)
    sys.exit(refused.exit_code)


def _sentence(error: Exception) -> str | None:
    """Return what went wrong, for an error that somebody can act on; None: the program is at fault."""
    from urllib3.exceptions import HTTPError

    from local.aws_errors import AWS_ERRORS, explain_error

    if isinstance(error, (*AWS_ERRORS, HTTPError)):
        return explain_error(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error) if isinstance(error, RuntimeError | OSError | ValueError) else None


def _prepare_streams() -> None:
    """Open standard streams that the caller has closed, and write what a terminal cannot show as `?`."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.dup2(nowhere, number)  # or the next file that is opened would be taken for the stream
            setattr(sys, name, os.fdopen(number, "r" if number == 0 else "w"))
        elif number and isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _end_by_signal(number: int, _: FrameType | None) -> NoReturn:
    raise SystemExit(128 + number)


def _end_quietly() -> NoReturn:
    """End as a program does whose reader has left (`| head`); say so if another connection broke."""
    left = [stream for stream in (sys.stdout, sys.stderr) if _has_no_reader(stream.fileno())]
    for stream in left:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # for what Python still writes at its end
    sys.exit(128 + signal.SIGPIPE if left else f"{PROGRAM}: a connection was cut off: try again")


def _has_no_reader(number: int) -> bool:
    output = select.poll()
    output.register(number, 0)
    return bool(output.poll(0))


if __name__ == "__main__":
    main()
