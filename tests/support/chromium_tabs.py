"""Tabs of Chromium with the TypeScript client in them, on the origin of a deployed stack; they can be killed."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

from tests.support.node_tools import must, packages

TAB, BLANK = "/clients-tab.html", "/clients-blank.html"
NO_BYTES, MANY_BYTES = 1, 500_000_000


@cache
def script() -> str:
    """The tab's code, bundled."""
    return must(str(packages() / "esbuild"), "harness/tab.ts", "--bundle", "--format=esm", "--target=es2022")


def page_of(url: str, token: str, user: str) -> str:
    """The tab's page, whose client asks a service at a URL."""
    settings = json.dumps({"url": url, "token": token, "user": user})
    text = f'<!doctype html><script type="application/json" id="settings">{settings}</script>'
    return f'{text}<script type="module">{script()}</script>'


@contextmanager
def app_server(host: str, text: str) -> Iterator[str]:
    """An app's own server on a port of this machine, with one page; yields its address.

    Chromium lets no page that a test has made up reach the machine that it runs on.
    """

    class Door(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        address_family = socket.AF_INET6 if host == "::1" else socket.AF_INET

    server = Server((host, 0), Door)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://{f'[{host}]' if ':' in host else host}:{server.server_port}/"
    server.shutdown()
    server.server_close()


class Device:
    """A browser with storage of its own. A blank page in it stays, and sets how much the origin may store."""

    def __init__(self, browser: Any, url: str, token: str, user: str) -> None:
        self.origin = "{0.scheme}://{0.netloc}".format(urlsplit(url))
        self.is_full, self.killed = False, 0
        self.context = browser.new_context(locale="en-GB")
        self.browser_session = browser.new_browser_cdp_session()
        self._serve(BLANK, "<!doctype html>")
        self._serve(TAB, page_of(url, token, user))
        blank = self.context.new_page()
        blank.goto(self.origin + BLANK)
        self._session = self.context.new_cdp_session(blank)

    def _serve(self, path: str, text: str) -> None:
        self.context.route(
            f"**{path}", lambda route: route.fulfill(body=text, content_type="text/html; charset=utf-8")
        )

    def tab(self) -> "Tab":
        return Tab(self)

    def fill(self, is_full: bool) -> None:
        """Let the origin's storage be full, or have room again. The browser may go by what it knew for a while."""
        if is_full != self.is_full:
            quota = {"origin": f"{self.origin}/", "quotaSize": NO_BYTES if is_full else MANY_BYTES}
            self._session.send("Storage.overrideQuotaForOrigin", quota)
            self.is_full = is_full


class Tab:
    """One tab. A killed one is gone at once: its process crashes, and no code of it runs any more."""

    def __init__(self, device: Device) -> None:
        self._device, self._zone = device, ""
        self.page = device.context.new_page()
        self._session = device.context.new_cdp_session(self.page)
        self.page.goto(device.origin + TAB)
        self.page.wait_for_function("() => globalThis.told !== undefined")

    def tell(self, command: dict[str, Any]) -> dict[str, Any]:
        """Have something done; returns what came of it."""
        self._prepare(command)
        told: dict[str, Any] = self.page.evaluate("(command) => told(command)", command)
        return told

    def tell_and_kill(self, command: dict[str, Any]) -> None:
        """Have something done, and kill the tab in the midst of it."""
        if command:
            self._prepare(command)
            self.page.evaluate("(command) => void told(command)", command)
        target = self._session.send("Target.getTargetInfo")["targetInfo"]["targetId"]
        browser = self._device.browser_session
        session = browser.send("Target.attachToTarget", {"targetId": target, "flatten": False})["sessionId"]
        crash = json.dumps({"id": 1, "method": "Page.crash"})
        with self.page.expect_event("crash"):  # nobody is left to answer
            browser.send("Target.sendMessageToTarget", {"sessionId": session, "message": crash})
        self.page.close()
        self._device.killed += 1

    def _prepare(self, command: dict[str, Any]) -> None:
        zone = command.get("zone", "")
        if zone and zone != self._zone:
            self._session.send("Emulation.setTimezoneOverride", {"timezoneId": zone})
            self._zone = zone
