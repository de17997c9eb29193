"""streakline: the laptop cloud and the operator's commands."""

import argparse
import json
import sys

from local import cloud
from local.stack import load


def _token(arguments: argparse.Namespace) -> None:
    from local.tokens import token

    print(token(load(), arguments.user, admin=arguments.admin))


def main() -> None:
    """Run a command; errors an operator can act on end with their message and status 1."""
    parser = argparse.ArgumentParser(prog="streakline", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: object, text: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(name, help=text, description=text)
        sub.set_defaults(run=run)
        return sub

    command("up", lambda _: cloud.up(), "start the laptop cloud and deploy template.yaml to it")
    command("down", lambda _: cloud.down(), "stop it")
    command("status", lambda _: print(json.dumps(cloud.status(), indent=2)), "what runs, what waits")
    token = command("token", _token, "print a JWT of a user")
    token.add_argument("--user", required=True)
    token.add_argument("--admin", action="store_true")
    arguments = parser.parse_args()
    try:
        arguments.run(arguments)
    except RuntimeError as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
