"""Processes of the laptop cloud, and the tools that they run.

A process is started once, found again, and stopped with its children. Tools have environments of their
own, because the emulator and the SAM CLI pin other versions than we do.
"""

import contextlib
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from local.paths import LOCAL, LOGS, ROOT, folder_id

READY_SECONDS_MAX = 60
STOP_SECONDS_MAX = 15


def free_port() -> int:
    """Return a loopback port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_open(port: int) -> bool:
    """Whether something listens on a loopback port."""
    with socket.socket() as probe:
        probe.settimeout(0.5)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def pid_of(name: str) -> int | None:
    """Return the process's id if it still runs, else None."""
    try:
        pid, began, *folder = map(int, _pid_file(name).read_text().split())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    # It is another process, because the machine has been started anew; or that of the folder which this one
    # is a copy of.
    if began != _began(pid) or folder not in ([], folder_id(LOCAL)):
        return None
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:  # It was our own child, and it has ended.
            return None
    return None if _is_dead(pid) else pid


def start(
    name: str, command: Sequence[str | Path], env: Mapping[str, str], is_ready: Callable[[], bool]
) -> None:
    """Start a process in a process group of its own, and wait until it is ready.

    Raises RuntimeError, with the end of its log, if it dies or is not ready within a minute.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    _pid_file(name).parent.mkdir(parents=True, exist_ok=True)
    log = LOGS / f"{name}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [str(part) for part in command],
            env={**os.environ, **env},
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    _pid_file(name).write_text(" ".join(map(str, [process.pid, _began(process.pid), *folder_id(LOCAL)])))
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not is_ready() or process.poll() is not None:  # Another process may answer in its place.
        if process.poll() is not None or time.monotonic() > deadline:
            stop(name)
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise RuntimeError(f"{name} did not start; the end of {log}:\n{tail}")
        time.sleep(0.1)


def stop(name: str) -> bool:
    """Stop a process and its children, by force if it takes too long. Returns whether it was running."""
    pid = pid_of(name)
    if pid is not None:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, number)
                os.killpg(pid, signal.SIGCONT)  # one that somebody has stopped (SIGSTOP) hears nothing else
            deadline = time.monotonic() + STOP_SECONDS_MAX
            while pid_of(name) is not None and time.monotonic() < deadline:
                time.sleep(0.05)
            if pid_of(name) is None:
                break
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)  # ends children that it left behind in its group
    _pid_file(name).unlink(missing_ok=True)
    return pid is not None


def working_in(folder: Path) -> list[int]:
    """Return the processes whose working directory a folder is; none where there is no /proc."""
    pids = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # the process has ended meanwhile, or is another user's
            if link.readlink() == folder:
                pids.append(int(link.parent.name))
    return pids


def uv() -> str:
    """Return the path of the uv that runs this process, or of the one that is installed."""
    return os.environ.get("UV") or shutil.which("uv") or str(LOCAL / "bin" / "uv")


def require_tools() -> None:
    """Raise RuntimeError, with a sentence, if a tool is missing that a deployment is built with."""
    for name, path in (("uv", shutil.which(uv())), ("make", shutil.which("make"))):
        if path is None:
            raise RuntimeError(
                f"a laptop cloud is built with {name}, which is not on the PATH: install it first"
            )


def tool(name: str) -> Path:
    """Return a tool's executable. Installs it from its lock file if it is missing or outdated."""
    home = LOCAL / "tools" / name
    home.parent.mkdir(parents=True, exist_ok=True)
    with (home.parent / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Several test processes may want to install it at once.
        _install(name, home)
    return home / "bin" / name


def emulator() -> list[str | Path]:
    """Return the command that serves the emulator; its settings are environment variables."""
    # -P: our modules' names are not to hide others.
    return [tool("ministack").with_name("python"), "-P", ROOT / "local" / "cloud" / "ministack_server.py"]


def sam() -> list[str | Path]:
    """Return the command of the SAM CLI for a deployment to the emulator."""
    return [tool("sam").with_name("python"), "-P", ROOT / "local" / "cloud" / "sam_cli.py"]


def _pid_file(name: str) -> Path:
    return LOCAL / "run" / f"{name}.pid"


def _is_dead(pid: int) -> bool:
    """Whether a process has ended, and only whoever started it has not taken notice."""
    return _status(pid)[:1] == ["Z"]


def _began(pid: int) -> int:
    """Return when a process began, in ticks since the machine's start; 0 if that is unknown."""
    status = _status(pid)
    return int(status[19]) if status else 0


def _status(pid: int) -> list[str]:
    """Return the system's fields of a process, from its state on; [] where there is no /proc."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _install(name: str, home: Path) -> None:
    requirements = ROOT / "local" / "requirements" / f"{name}.txt"
    wanted = requirements.read_text()
    installed = home / "installed.txt"
    if not installed.exists() or installed.read_text() != wanted:
        print(f"installing {name} ...", flush=True)
        python = home / "bin" / "python"
        subprocess.run([uv(), "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True)
        subprocess.run(
            [uv(), "pip", "install", "--quiet", "--python", python, "--requirement", requirements], check=True
        )
        installed.write_text(wanted)


def main() -> None:
    """Run a tool: python -m local.cloud.processes sam build."""
    executable = tool(sys.argv[1])
    os.execv(executable, [str(executable), *sys.argv[2:]])


if __name__ == "__main__":
    main()
