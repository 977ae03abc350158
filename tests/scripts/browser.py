"""Drives a headless Chromium over its debugging pipe, with nothing but Python's own library.

Protocol: chromedevtools.github.io/devtools-protocol; messages are JSON, each ended by a zero byte, the browser reads
them from file descriptor 3 and writes to 4 (`--remote-debugging-pipe`).
"""
import base64
import collections
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time


class BrowserError(Exception):
    pass


def find_chromium():
    """The path of a Chromium, or None."""
    for name in ("chromium-headless-shell", "chromium", "google-chrome"):
        if path := shutil.which(name):
            return path
    return None


def high_pipe():
    """A pipe with both ends above 9, so that neither is in the way of 3 and 4."""
    ends = []
    for end in os.pipe():
        ends.append(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10))
        os.close(end)
    return ends


class Browser:
    """One browser with one page. A context manager: the browser ends with it."""

    def __init__(self, path, timeout=30):
        self.timeout = timeout
        self.events = collections.deque()
        self.last_id = 0
        self.session = None
        self.buffer = b""
        self.profile = tempfile.TemporaryDirectory(prefix="ringsim-browser-")
        its_input, self.input = high_pipe()
        self.output, its_output = high_pipe()

        def wire_up():
            os.dup2(its_input, 3)
            os.dup2(its_output, 4)

        self.process = subprocess.Popen(
            [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars",
             "--no-first-run", "--disable-background-networking", "--font-render-hinting=none",
             "--force-color-profile=srgb", "--force-device-scale-factor=1", "--remote-debugging-pipe",
             f"--user-data-dir={self.profile.name}"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            close_fds=False, preexec_fn=wire_up)
        os.close(its_input)
        os.close(its_output)
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        os.close(self.input)
        os.close(self.output)
        for _ in range(20):  # processes of the browser that end after it may still write into its profile
            try:
                self.profile.cleanup()
                return
            except OSError:
                time.sleep(0.1)

    def receive(self, until):
        """The next message."""
        while b"\0" not in self.buffer:
            readable, _, _ = select.select([self.output], [], [], max(0, until - time.monotonic()))
            if not readable:
                raise BrowserError(f"the browser did not answer within {self.timeout} s")
            part = os.read(self.output, 1 << 20)
            if not part:
                raise BrowserError(f"the browser ended, exit code {self.process.wait()}")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, **parameters):
        """Sends a command and returns its result; events that come meanwhile are kept."""
        self.last_id += 1
        command = {"id": self.last_id, "method": method, "params": parameters}
        if self.session:
            command["sessionId"] = self.session
        os.write(self.input, json.dumps(command).encode() + b"\0")
        until = time.monotonic() + self.timeout
        while True:
            message = self.receive(until)
            if message.get("id") == self.last_id:
                break
            self.events.append(message)
        if "error" in message:
            raise BrowserError(f"{method}: {message['error']}")
        return message["result"]

    def open(self, url):
        """Loads a page until it is drawn; the seconds that it took. Forgets the events of the page before."""
        self.events.clear()
        begun = time.monotonic()
        self.call("Page.navigate", url=url)
        until = begun + self.timeout
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.receive(until))
        self.call("Page.captureScreenshot", format="png")  # which waits until the page is drawn
        return time.monotonic() - begun

    def evaluate(self, script):
        """The value of an expression; a promise is waited for."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise BrowserError(json.dumps(result["exceptionDetails"]))
        return result["result"].get("value")

    def picture(self, box):
        """PNG of a part of the page: x, y, width, height, in pixels of the page."""
        clip = dict(zip(("x", "y", "width", "height"), box), scale=1)
        return base64.b64decode(
            self.call("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)["data"])

    def requests(self):
        """URLs that the page has asked for since open()."""
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def complaints(self):
        """What the console has shown since open()."""
        found = []
        for event in self.events:
            if event.get("method") == "Log.entryAdded":
                found.append(event["params"]["entry"]["text"])
            elif event.get("method") in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
                found.append(json.dumps(event["params"]))
        return found
