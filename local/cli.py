"""`streakline`: commands for operators, of the laptop cloud or, with --stack-name, of a stack on AWS."""

import argparse
import json
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime
from importlib.metadata import version
from itertools import chain
from pathlib import Path
from typing import Any

from local import options
from local.book import add_options as rule_options
from local.cloud import laptop_cloud
from local.event_sources import BadRow, Body, from_csv, from_git, from_purchases, purchases
from local.options import (
    amnesty_options,
    groups_of,
    hook_options,
    import_options,
    restore_options,
    webhooks_options,
    what_if_options,
)
from local.paths import REPORT
from local.plan.plan_command import add_options as plan_options
from local.regions import add_options as region_options
from local.rerate import add_options as rerate_options
from local.stack import AwsError, Stack, load, sentence


def _print(answer: object) -> None:
    print(json.dumps(answer, indent=2))


def _stack(arguments: argparse.Namespace) -> Stack:
    """Return the stack that a command acts on: the laptop's, unless one is named."""
    if arguments.stack_name:
        from local.stack import find

        return find(arguments.stack_name, arguments.region)
    return load()


def _status(arguments: argparse.Namespace) -> None:
    from local.operate import status, verdict

    try:
        seen = status.look_at_stack(_stack(arguments)) if arguments.stack_name else status.look_at_laptop()
    except SystemExit as nothing:  # no laptop cloud is up
        if arguments.json:
            _print(
                {"is_well": False, "verdict": str(nothing.code), "problems": [{"what": str(nothing.code)}]}
            )
        raise
    if arguments.json:
        _print(verdict.as_json(seen))
    else:
        print(verdict.as_text(seen))
    if verdict.problems(seen):
        raise SystemExit(1)


def _token(arguments: argparse.Namespace) -> None:
    from local.api import bearer, subject

    stack = _stack(arguments)
    token = bearer(stack, arguments.user, *groups_of(arguments))
    if not stack.is_laptop:
        print(f"the API knows {arguments.user} as {subject(token)}", file=sys.stderr)
    print(token)


def _page(arguments: argparse.Namespace) -> None:
    from local import api
    from local.api import bearer

    stack = _stack(arguments)
    print(api.page_link(stack, bearer(stack, arguments.user, *groups_of(arguments))))


def _smoke(arguments: argparse.Namespace) -> None:
    from local.smoke.smoke_command import smoke

    if not smoke(_stack(arguments), as_json=arguments.json):
        raise SystemExit(1)


def _replay(arguments: argparse.Namespace) -> None:
    from local import replay

    if arguments.orders:
        _replay_orders(arguments)
        return
    source, path = _source(arguments)
    events = list(source(path))
    if arguments.twice:
        events += events
    if arguments.shuffle is not None:
        events = replay.shuffled(events, arguments.shuffle)
    outcome = replay.replay(_stack(arguments), events, arguments.via)
    _print({**outcome.counts, "seconds": round(outcome.seconds, 1)})
    if outcome.refused:
        raise RuntimeError(f"{len(outcome.refused)} refused, with reasons: {replay.REFUSED_FILE}")


def _replay_orders(arguments: argparse.Namespace) -> None:
    from local import replay
    from local.cloud import patience

    webhooks = [replay.webhook(each) for each in purchases(arguments.orders)] * (2 if arguments.twice else 1)
    if arguments.shuffle is not None:
        webhooks = replay.shuffled(webhooks, arguments.shuffle)
    started, stack = time.monotonic(), _stack(arguments)
    outcome = (replay.post if arguments.via == "http" else replay.send)(stack, webhooks)
    patience.drain_leads(stack)
    _print({**outcome.counts, "seconds": round(time.monotonic() - started, 1)})


def _source(arguments: argparse.Namespace) -> tuple[Callable[[Path], Iterable[Body]], Path]:
    if arguments.git:
        return from_git, arguments.git
    return (from_purchases, arguments.purchases) if arguments.purchases else (from_csv, arguments.file)


def _import(arguments: argparse.Namespace) -> None:
    from local.move_in import import_command

    import_command.run(arguments, _stack(arguments))


def _verify(arguments: argparse.Namespace) -> None:
    from local import verify
    from local.api import Api

    expected = verify.expect(from_csv(arguments.file), arguments.as_of)
    differences = verify.compare(Api(_stack(arguments)), expected, arguments.as_of)
    _print({"users": len(expected), "differences": differences})
    if differences:
        raise RuntimeError(f"{len(differences)} answers differ from the independent calculation")


def _redrive(arguments: argparse.Namespace) -> None:
    from local.operate import redrive

    if (arguments.reason is None) != (arguments.discard is None):
        raise RuntimeError("--discard ID and --reason TEXT go together")
    only = "" if arguments.queue is None else redrive.consumer_of(arguments.queue)
    stack = _stack(arguments)
    if arguments.discard is not None:
        _print({"discarded": redrive.discard(stack, arguments.discard, arguments.reason, only=only)})
    elif arguments.take_back is not None:
        _print({"taken_back": redrive.take_back(stack, arguments.take_back, only=only)})
    elif arguments.discarded:
        _print({"discarded": redrive.discarded(stack, only=only)})
    else:
        found = redrive.redrive(stack, only_list=arguments.list, only=only)
        _print(found)
        if found["left"] and not arguments.list:
            raise RuntimeError(
                f"{len(found['left'])} left, each with why under `again`: mend that and redrive, "
                "or give one up: --discard ID --reason TEXT"
            )


def _logs(arguments: argparse.Namespace) -> None:
    from local.operate import functions

    stack, now = _stack(arguments), datetime.now(UTC)
    wanted = arguments.function, arguments.since
    for line in functions.lines(stack, *wanted, follow=arguments.follow, now=now):
        print(line, flush=arguments.follow)


def _rebuild(arguments: argparse.Namespace) -> None:
    from local.operate import nightly_run
    from local.operate.nightly_run import account_days, rebuild_features

    if arguments.what == "features":
        _print(rebuild_features(_stack(arguments), arguments.lead, dry_run=arguments.dry_run))
        return
    stack, span, days = _stack(arguments), (arguments.since, arguments.until), None
    if arguments.dry_run or arguments.lead or (not all(span) and not arguments.user):
        raise RuntimeError("rebuild lake takes --from and --to, or --user, and --entity")
    if arguments.user:
        days = account_days(stack, arguments.user)
        dates = sorted(map(date.fromisoformat, chain(*days.values())))
        span = (span[0] or dates[0], span[1] or dates[-1])
    more: dict[str, Any] = {"entities": arguments.entity, "days": days}
    _print(nightly_run.run(stack, *span, repair=False, rebuild=True, **more))


def _recompute(arguments: argparse.Namespace) -> None:
    from local.operate import nightly_run

    if (arguments.since is None) != (arguments.until is None):
        raise RuntimeError("--from and --to go together")
    span, repair = (arguments.since, arguments.until), not arguments.dry_run
    more = {"everybody": arguments.everybody, "full": arguments.full}
    found = nightly_run.run(_stack(arguments), *span, repair=repair, **more)
    _print(found)
    left = {*found["unrepaired"], *found["frozen"]}
    if left and repair:
        raise RuntimeError(f"{len(left)} users could not be repaired")


def _backfill(arguments: argparse.Namespace) -> None:
    from local.operate import nightly_run

    stack = _stack(arguments)
    span = arguments.since, arguments.until
    print(
        nightly_run.run_backfill(stack, *span, rebuild=arguments.rebuild, workers=arguments.workers),
        flush=True,
    )
    _print(nightly_run.run(stack, *span, repair=False))


def _sql(arguments: argparse.Namespace) -> None:
    from local.analyst import sql

    sql.run(arguments, _stack(arguments))


def _report(arguments: argparse.Namespace) -> None:
    from local.operate import html_report

    html_report.write(load(), arguments.out)
    print(arguments.out)


def _training_set(arguments: argparse.Namespace) -> None:
    from adapters.platform.objects import S3Objects
    from analytics.features.training_sets import training_set

    stack = _stack(arguments)
    lake = S3Objects(stack.client("s3"), stack.outputs["LakeBucketName"])
    rows = training_set(
        lake,
        arguments.labels,
        arguments.out,
        known_by=arguments.known_by,
        organizations=arguments.organization or None,
        grace_days=stack.campaign_grace_days,
    )
    _print({"rows": rows, "file": str(arguments.out)})


def _plan(arguments: argparse.Namespace) -> None:
    from local.plan import plan_command

    plan_command.run(arguments, _parameters(_stack(arguments)) if arguments.stack_name else None)


def _parameters(stack: Stack) -> dict[str, str]:
    """Return a stack's parameters. Of those that are hidden an output says whether they name something."""
    known = {name: value for name, value in stack.parameters.items() if value != HIDDEN}
    outputs = {"RedisUrl": "Redis", "IdentityUrl": "IdentityDatabase"}
    return known | {name: YOURS for name, output in outputs.items() if stack.outputs.get(output) == YOURS}


def _webhooks(arguments: argparse.Namespace) -> None:
    from local.operate import webhooks

    webhooks.run_webhooks(arguments, _stack(arguments))


def _hook(arguments: argparse.Namespace) -> None:
    from local.operate import webhooks

    webhooks.run_hook(arguments, _stack(arguments))


def _rules(arguments: argparse.Namespace) -> None:
    from local import book

    book.run(arguments, None if arguments.action == "check" else _stack(arguments))


def _amnesty(arguments: argparse.Namespace) -> None:
    from local import amnesty

    amnesty.run(arguments, _stack(arguments))


def _rerate(arguments: argparse.Namespace) -> None:
    from local import rerate

    rerate.run(arguments, _stack(arguments))


def _what_if(arguments: argparse.Namespace) -> None:
    from local.what_if import what_if_command

    what_if_command.run(arguments, _stack(arguments))


def _rotate_key(arguments: argparse.Namespace) -> None:
    from local.operate import fingerprint_keys

    keys = fingerprint_keys.RECEIPTS if arguments.receipts else fingerprint_keys.PEOPLE
    fingerprint_keys.run(arguments.action, _stack(arguments), keys)


def _erase(arguments: argparse.Namespace) -> None:
    from local.operate import persons

    _print(persons.erase(arguments, _stack(arguments)))


def _export(arguments: argparse.Namespace) -> None:
    from local.operate import persons

    _print(persons.export(arguments, _stack(arguments)))


def _certificate(arguments: argparse.Namespace) -> None:
    from local.operate import persons

    stack = _stack(arguments)
    _print(persons.certificate(arguments.file, arguments.user, arguments.lead, stack))


def _who(arguments: argparse.Namespace) -> None:
    from local.operate import persons

    _print(persons.who(set(arguments.names), _stack(arguments)))


def _restore(arguments: argparse.Namespace) -> None:
    from local import restore

    restore.run(arguments, _stack(arguments))


def _region(arguments: argparse.Namespace) -> None:
    from local import regions

    regions.run(arguments, _stack(arguments))


def _prove(arguments: argparse.Namespace) -> None:
    from local import prove

    _print(prove.prove(arguments, _stack(arguments)))


def _check_proof(arguments: argparse.Namespace) -> None:
    from local import check_proof

    print("\n".join(["proven:", *check_proof.check(arguments.file, arguments.root)]))


def _audit(arguments: argparse.Namespace) -> None:
    from local import prove

    prove.audit(arguments, _stack(arguments))


def _demo(_: argparse.Namespace) -> None:
    from local.demo import demo

    demo()


HIDDEN = "****"  # what CloudFormation says of a parameter with NoEcho, be it set or empty
YOURS = "yours"  # what infra/app/network.yaml says of a cache or database that the stack has not created


def parser() -> argparse.ArgumentParser:
    """Return the parser of all commands."""
    parser = argparse.ArgumentParser(prog="streakline", description=__doc__)
    parser.add_argument("--version", action="version", version=f"streakline {version('streakline')}")
    _add_stack(parser, None)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(
        name: str, run: Callable[[argparse.Namespace], object], text: str, *, on_aws: bool = True
    ) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run, on_aws=on_aws, command=name)
        _add_stack(sub, argparse.SUPPRESS)  # what was said before the command stays
        return sub

    command(
        "up",
        lambda _: laptop_cloud.up(),
        "start the laptop cloud and deploy template.yaml to it",
        on_aws=False,
    )
    command("down", lambda _: laptop_cloud.down(), "stop it", on_aws=False)
    status = command("status", _status, "whether all is well: what runs, what waits and for how long")
    status.add_argument("--json", action="store_true", help="the same for machines")
    command("demo", _demo, "up, replay, check, show", on_aws=False)
    smoke = command("smoke", _smoke, "prove a deployment: each part once, then remove what was made")
    smoke.add_argument("--json", action="store_true", help="the steps as JSON instead of a table")
    options.user_options(command("token", _token, "print a JWT of a user"))
    options.user_options(command("page", _page, "print the web page's address, with a user signed in"))
    options.replay_options(
        command("replay", _replay, "post events of a CSV file or of a git history, as an admin")
    )
    options.verify_options(
        command("verify", _verify, "hold every user's profile against an independent calculation")
    )
    import_options(command("import", _import, "take in histories, or opening positions, of another system"))
    hook_options(command("hook", _hook, "addresses for vendors' webhooks, and their secrets"))
    rule_options(command("rules", _rules, "the book of rules: check, compare, publish, show"))
    amnesty_options(command("amnesty", _amnesty, "give back what an outage cost"))
    rerate_options(command("rerate", _rerate, "judge events anew by a version that took effect in the past"))
    what_if_options(
        command("what-if", _what_if, "what another book of rules would have led to, over the whole lake")
    )
    webhooks_options(command("webhooks", _webhooks, "outgoing webhooks: endpoints, and sending again"))
    rotate_key = command("rotate-key", _rotate_key, "another key for the hashes of people who answer")
    rotate_key.add_argument("action", choices=("show", "announce", "promote", "retire"))
    rotate_key.add_argument("--receipts", action="store_true", help="the keys of time receipts instead")
    erased = command("erase", _erase, "erase a person from every online store, and wait for the certificate")
    options.person_options(erased, out="where to write the certificate", is_needed=False)
    erased.add_argument("--lift", action="store_true", help="let an erased user's id be used anew instead")
    exported = command("export", _export, "everything that is known of a person, as a ZIP of JSON and CSV")
    options.person_options(exported, out="where to write it", is_needed=True)
    options.certificate_options(
        command("certificate", _certificate, "check that a certificate of an erasure is genuine")
    )
    named = command("who", _who, "which users the logs mean: reads all profiles' ids")
    named.add_argument("names", nargs="+", metavar="NAME", help="as logs have it: ~ and 16 digits")
    options.prove_options(command("prove", _prove, "a small file that proves an entry of a user's ledger"))
    options.check_proof_options(command("check-proof", _check_proof, "verify it with nothing but the file"))
    options.audit_options(
        command("audit", _audit, "table, lake and warehouse against each other and the root")
    )
    restore_options(command("restore", _restore, "what tables had before an instant, from the lake"))
    region_options(
        command("region", _region, "of two regions: which one writes; promote one, let one return")
    )
    _repair_commands(command)
    return parser


def _repair_commands(command: Callable[..., argparse.ArgumentParser]) -> None:
    """Add what repairs, recomputes, asks and plans."""
    options.redrive_options(command("redrive", _redrive, "send what waits in the failure queues again"))
    options.logs_options(command("logs", _logs, "what a function of the stack has logged"))
    options.rebuild_options(
        command("rebuild", _rebuild, "features of leads from their events; days of the lake from raw")
    )
    options.recompute_options(
        command("recompute", _recompute, "the nightly run, now: lake, warehouse, reconcile, repair")
    )
    options.backfill_options(
        command("backfill", _backfill, "curate many days at once by Spark (Glue), then load them")
    )
    options.training_set_options(
        command("training-set", _training_set, "features of leads as of the instants of labels")
    )
    options.sql_options(command("sql", _sql, "ask the warehouse or the lake, in Redshift's SQL"))
    planned = command("plan", _plan, "what an environment costs, and what ends first, for a traffic")
    plan_options(planned)
    html_report = command("report", _report, "write the report as one HTML file", on_aws=False)
    html_report.add_argument("--out", type=Path, default=REPORT)


def _add_stack(parser: argparse.ArgumentParser, default: str | None) -> None:
    parser.add_argument("--stack-name", default=default, metavar="NAME", help="a stack on AWS; the laptop's")
    parser.add_argument("--region", default=default, help="where it is; as AWS_REGION and the profile say")


def main() -> None:
    """Run a command. If an operator can act on an error, it ends with the error's message and status 1."""
    arguments = parser().parse_args()
    try:
        if arguments.region and not arguments.stack_name and arguments.command != "plan":
            raise RuntimeError("--region is of a stack on AWS: name that too, with --stack-name")
        if arguments.stack_name and not arguments.on_aws:
            raise RuntimeError(f"`{arguments.command}` is of the laptop cloud: it knows no --stack-name")
        arguments.run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        _end_quietly()
    except AwsError as error:
        sys.exit(f"streakline: {sentence(error)}")
    except (RuntimeError, BadRow, OSError, ValueError) as error:
        sys.exit(f"streakline: {error}")
    except KeyboardInterrupt:
        sys.exit(130)


def _end_quietly() -> None:
    """End as a program does whose reader has left (`| head`); say so if another connection broke."""
    output = select.poll()
    output.register(sys.stdout.fileno(), 0)
    if not output.poll(0):
        sys.exit("streakline: a connection was cut off: try again")
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what Python still writes at its end
    sys.exit(128 + signal.SIGPIPE)


if __name__ == "__main__":
    main()
