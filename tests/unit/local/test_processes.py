"""Processes of the laptop cloud, and others that are taken for them."""

import importlib
import os
import subprocess
import threading
import time
import urllib.request
from http.server import HTTPServer, SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from botocore.utils import get_environ_proxies

import local
from local import stack
from local.cloud import embedded_postgres, laptop_cloud, processes

NAME = "ours"


@pytest.fixture
def pid_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(processes, "LOCAL", tmp_path)
    monkeypatch.setattr(processes, "LOGS", tmp_path / "logs")
    return tmp_path / "run" / f"{NAME}.pid"


def test_another_process_that_has_got_the_id_is_left_alone(pid_file: Path) -> None:
    processes.start(NAME, ["sleep", "60"], {}, lambda: True)
    written, pid = pid_file.read_text(), processes.pid_of(NAME)
    time.sleep(0.05)  # the system tells to 10 ms when a process began
    other = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        pid_file.write_text(written.replace(str(pid), str(other.pid), 1))
        assert processes.pid_of(NAME) is None
        assert not processes.stop(NAME)
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()
        pid_file.write_text(written)
        assert processes.stop(NAME)


def test_a_copy_of_a_folder_ends_only_what_it_has_started(
    pid_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes.start(NAME, ["sleep", "60"], {}, lambda: True)
    pid = processes.pid_of(NAME)
    copy = tmp_path.with_name(f"{tmp_path.name}-copy")
    subprocess.run(["cp", "-a", tmp_path, copy], check=True)
    monkeypatch.setattr(processes, "LOCAL", copy)
    assert processes.pid_of(NAME) is None
    processes.start(NAME, ["sleep", "60"], {}, lambda: True)
    assert processes.pid_of(NAME) not in (None, pid)
    assert processes.stop(NAME)
    moved = tmp_path.with_name(f"{tmp_path.name}-moved")
    tmp_path.rename(moved)
    monkeypatch.setattr(processes, "LOCAL", moved)
    assert processes.pid_of(NAME) == pid
    assert processes.stop(NAME)


def test_the_server_of_another_folder_is_not_ended_by_a_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server's file names its process and its folder, and is copied with both."""
    server = subprocess.Popen(["sleep", "60"], start_new_session=True)
    original, copy = tmp_path / "original", tmp_path / "copy"
    original.mkdir()
    (original / "postmaster.pid").write_text(f"{server.pid}\n{original}\n1\n5432\n\n127.0.0.1\n")
    subprocess.run(["cp", "-a", original, copy], check=True)
    asked: list[object] = []
    monkeypatch.setattr(
        "local.cloud.embedded_postgres.subprocess.run", lambda command, **_: asked.append(command)
    )
    try:
        for folder in (copy, original):
            monkeypatch.setattr(embedded_postgres, "FOLDER", folder)
            embedded_postgres.end_left_over()
    finally:
        server.kill()
        server.wait()
    assert [command[3] for command in asked] == [original]  # type: ignore[index]


def test_the_code_of_one_checkout_does_not_act_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "local").mkdir()
    (tmp_path / "local" / "paths.py").touch()
    monkeypatch.chdir(tmp_path / "local")
    for act in (laptop_cloud.down, laptop_cloud.up, stack.load):
        with pytest.raises(SystemExit, match=r"`make setup` in .* installs its own"):
            act()


PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


@pytest.mark.parametrize("name", PROXIES)
@pytest.mark.parametrize("others", ["", "example.com", ".corp, example.com", "*"])
def test_no_proxy_stands_before_loopback(name: str, others: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for each in (*PROXIES, "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(each, raising=False)
    monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("NO_PROXY", others)
    importlib.reload(local)
    try:
        for url in ("http://127.0.0.1:4566", "http://localhost:1", "http://a.execute-api.localhost:1"):
            assert get_environ_proxies(url) == {}
            assert urllib.request.proxy_bypass(url.split("/")[2].split(":")[0])
        assert (get_environ_proxies("http://example.org") == {}) == (others == "*")
        assert (get_environ_proxies("http://example.com") == {}) == bool(others)
        healthy = HTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler)
        threading.Thread(target=healthy.handle_request, daemon=True).start()
        urllib.request.urlopen(f"http://127.0.0.1:{healthy.server_port}/", timeout=5).close()
        healthy.server_close()
    finally:
        for each in ("no_proxy", "NO_PROXY"):
            monkeypatch.setenv(each, "")


def test_a_process_that_has_ended_is_not_ready_though_another_answers(pid_file: Path) -> None:
    def is_ready() -> bool:
        os.waitid(os.P_PID, int(pid_file.read_text().split()[0]), os.WEXITED | os.WNOWAIT)
        return True

    with pytest.raises(RuntimeError, match="did not start"):
        processes.start(NAME, ["false"], {}, is_ready)


@pytest.mark.parametrize("missing", ["uv", "make"])
def test_a_tool_that_a_cloud_is_built_with_and_that_is_missing_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in {"uv", "make"} - {missing}:
        (tmp_path / name).touch(0o755)
    monkeypatch.delenv("UV", raising=False)
    monkeypatch.setattr(processes, "LOCAL", tmp_path)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=f"is built with {missing}, which is not on the PATH: install it"):
        processes.require_tools()
