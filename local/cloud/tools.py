"""Tools in environments of their own, because the emulator and the SAM CLI pin other versions than we do."""

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from local.paths import LOCAL, ROOT


def uv() -> str:
    """Return the path of the uv that runs this process."""
    return os.environ.get("UV") or shutil.which("uv") or str(LOCAL / "bin" / "uv")


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
    return [tool("ministack").with_name("python"), "-P", ROOT / "local" / "cloud" / "emulator" / "launch.py"]


def sam() -> list[str | Path]:
    """Return the command of the SAM CLI for a deployment to the emulator."""
    return [tool("sam").with_name("python"), "-P", ROOT / "local" / "cloud" / "emulator" / "sam.py"]


def _install(name: str, home: Path) -> None:
    wanted = (Path(__file__).parents[1] / "requirements" / f"{name}.txt").read_text()
    done = home / "installed.txt"
    if not done.exists() or done.read_text() != wanted:
        print(f"installing {name} ...", flush=True)
        python = home / "bin" / "python"
        subprocess.run([uv(), "venv", "--quiet", "--clear", "--python", sys.executable, home], check=True)
        requirements = ROOT / "local" / "requirements" / f"{name}.txt"
        subprocess.run(
            [uv(), "pip", "install", "--quiet", "--python", python, "--requirement", requirements], check=True
        )
        done.write_text(wanted)


def main() -> None:
    """Run a tool: python -m local.cloud.tools sam build."""
    executable = tool(sys.argv[1])
    os.execv(executable, [str(executable), *sys.argv[2:]])


if __name__ == "__main__":
    main()
