"""One process of the Python client, told what to do by lines of JSON on its input; as harness/page.ts is for Node."""

import json
import os
import sys
import time
from datetime import datetime, timedelta
from email.utils import format_datetime, parsedate_to_datetime
from pathlib import Path
from typing import Any

from streakline_client import Queueing, Reply, Request, Streakline, Unreachable, over_http
from streakline_client.queue.clock import DeviceClocks, Reading


class World:
    """The device: what harness/world.ts tells of."""

    def __init__(self, url: str) -> None:
        self.elapsed, self.jump, self.net, self.asked = 0, 0, "off", 0
        self._real, self._clocks = over_http(url), DeviceClocks()

    def read(self) -> Reading:
        real = self._clocks.read()
        wall, ticks = int(time.time() * 1000) + self.elapsed + self.jump, real.ticks + self.elapsed
        return Reading(wall, ticks, real.run, real.counts_sleep)

    def send(self, request: Request) -> Reply:
        self.asked += 1
        if self.net == "off" or (self.net == "lossy" and self.asked % 3 == 1):
            raise Unreachable("offline")
        passed = timedelta(milliseconds=self.elapsed)
        body = json.loads(request.body) if request.body else {}
        if "sent_at" in body:
            body["sent_at"] = (datetime.fromisoformat(body["sent_at"]) - passed).isoformat()
        sent = json.dumps(body).encode() if request.body else None
        answered = self._real(Request(request.method, request.path, request.headers, sent, request.timeout))
        if self.net == "lossy" and self.asked % 3 == 2:
            raise Unreachable("the answer was lost")
        told = parsedate_to_datetime(answered.headers["date"]) + passed
        return Reply(answered.status, answered.body, {**answered.headers, "date": format_datetime(told)})


def main(url: str, token: str, user: str, folder: str) -> None:
    world, refused = World(url), list[Any]()
    how = Queueing(path=Path(folder) / "queue.db", clocks=world.read, on_refused=refused.append)
    me = Streakline(url, token, user=user, queue=how, transport=world.send)
    for line in sys.stdin:
        command = json.loads(line)
        for name, value in command.get("world", {}).items():
            setattr(world, name, value)
        if "zone" in command:
            os.environ["TZ"] = command["zone"]
        told: Any = {}
        if command["do"] == "track":
            told = {"key": me.track("LESSON_COMPLETED", {"name": command["name"]}), "kept": True}
        elif command["do"] == "flush":
            told = {"waiting": me.flush(), "refused": [repr(each) for each in refused], "unkept": []}
        elif command["do"] == "estimate":
            told = me.estimate()
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
