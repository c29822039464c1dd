"""Headless Chromium over the DevTools protocol, through pipes: no port, no package beyond Python's standard library."""

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
TIMEOUT_S = 120


def program():
    """The path of a Chromium, or None."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """One browser with one tab. `events` holds what was said since the last open()."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="tare-browser-", ignore_cleanup_errors=True)
        theirs, self.writer = os.pipe()
        self.reader, theirs_out = os.pipe()
        # Moved up, so that neither is 3 or 4, where the browser expects them.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (theirs, theirs_out)]
        os.close(theirs)
        os.close(theirs_out)
        # The sandbox is not there for root and in most containers; only pages of the test's own are opened.
        arguments = [program(), "--headless", "--no-sandbox", "--remote-debugging-pipe", "--disable-gpu", "--no-first-run",
                     "--disable-dev-shm-usage", "--disable-extensions", "--hide-scrollbars",
                     "--user-data-dir=" + self.folder.name]
        self.process = subprocess.Popen(
            arguments, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=(3, 4), preexec_fn=lambda: (os.dup2(ends[0], 3), os.dup2(ends[1], 4)), start_new_session=True)
        for end in ends:
            os.close(end)
        self.number, self.session, self.received, self.events = 0, None, b"", []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.reader)
        os.close(self.writer)
        self.folder.cleanup()

    def open(self, path, width, scheme):
        """Shows a file in a window of `width` CSS pixels, in the colour scheme "light" or "dark"."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.evaluate("0")
        self.events = []
        self.call("Page.navigate", url="file://" + str(path))
        while not any(event["method"] == "Page.loadEventFired" for event in self.events):
            self.receive()
        # Two frames: what is loaded or thrown late has then been said.
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(0))))")

    def evaluate(self, script):
        """The value of a script, a promise awaited."""
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def screenshot(self, path):
        """Writes the whole page as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        image = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(image))

    def call(self, method, **parameters):
        """The answer to a command; other messages become events."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") != self.number:
                continue
            if "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            return answer["result"]

    def receive(self):
        deadline = time.monotonic() + TIMEOUT_S
        while b"\0" not in self.received:
            if not select.select([self.reader], [], [], max(0, deadline - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.reader, 1 << 20)
            if not part:
                raise RuntimeError("the browser has ended")
            self.received += part
        text, _, self.received = self.received.partition(b"\0")
        message = json.loads(text)
        if "method" in message:
            self.events.append(message)
        return message
