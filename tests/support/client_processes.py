"""Clients in processes of their own, in Node and in Python, that can be killed."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.node_tools import NODE, built
from tests.support.template import ROOT


class ClientProcess:
    """A process that is told what to do by lines of JSON."""

    def __init__(self, *command: str) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'client' / 'python'}"}
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def tell(self, command: dict[str, Any]) -> dict[str, Any]:
        """Have something done; returns what came of it."""
        self._write(command)
        line = self._process.stdout.readline() if self._process.stdout else ""
        assert line, f"the process ended: {self._process.poll()}"
        told: dict[str, Any] = json.loads(line)
        return told

    def tell_and_kill(self, command: dict[str, Any]) -> None:
        """Have something done, and kill the process in the midst of it."""
        if command:
            self._write(command)
        self.kill()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe:
                pipe.close()

    def _write(self, command: dict[str, Any]) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()


def in_node(url: str, token: str, user: str, folder: Path) -> ClientProcess:
    return ClientProcess(NODE, str(built() / "harness" / "page.js"), url, token, user, str(folder))


def in_python(url: str, token: str, user: str, folder: Path) -> ClientProcess:
    return ClientProcess(sys.executable, "-m", "tests.support.client_page", url, token, user, str(folder))
