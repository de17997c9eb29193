"""Background processes of the laptop cloud: start each once, find it again, stop it with its children."""

import contextlib
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from local.paths import LOCAL, LOGS, ROOT

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


def _pid_file(name: str) -> Path:
    return LOCAL / "run" / f"{name}.pid"


def pid_of(name: str) -> int | None:
    """Return the process's id if it still runs, else None."""
    try:
        pid = int(_pid_file(name).read_text())
        os.kill(pid, 0)
    except (OSError, ValueError):
        return None
    with contextlib.suppress(ChildProcessError):
        if os.waitpid(pid, os.WNOHANG)[0] == pid:  # It was our own child, and it has ended.
            return None
    return None if _is_dead(pid) else pid


def _is_dead(pid: int) -> bool:
    """Whether a process has ended, and only whoever started it has not taken notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False  # there is no /proc here


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
    _pid_file(name).write_text(str(process.pid))
    deadline = time.monotonic() + READY_SECONDS_MAX
    while not is_ready():
        if process.poll() is not None or time.monotonic() > deadline:
            stop(name)
            tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
            raise RuntimeError(f"{name} did not start; the end of {log}:\n{tail}")
        time.sleep(0.1)


def stop(name: str) -> bool:
    """Stop a process and its children, by force if it takes too long. Returns whether it was running."""
    pid = pid_of(name)
    if pid is not None:
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, how)
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
    found = []
    for each in Path("/proc").glob("[0-9]*/cwd"):
        with contextlib.suppress(OSError):  # it has ended meanwhile, or is somebody else's
            if each.readlink() == folder:
                found.append(int(each.parent.name))
    return found
