"""A Firefox as distributions ship it, driven over WebDriver BiDi, a W3C standard.

Playwright brings a patched Firefox of its own, and asks a stock one for commands that
only the newest has; Selenium wants a driver. Firefox itself speaks the protocol.
"""

import json
import shutil
import subprocess
import time
from pathlib import Path

import websocket

PATIENCE = 60  # s: a start, a page, an answer on a busy machine
LEFT = "NS_BINDING_ABORTED"  # its page was left before it came
# Said of a formula that has not come whole when the page is first laid out: what the
# pages say is counted in test_written.
HALF = "Invalid markup: Incorrect number of children"
KEYS = {"ArrowRight": "\ue014", "Enter": "\ue007"}
UNTIL = """async (wanted, ...given) => {
    const found = %s;
    const last = performance.now() + wanted;
    while (!found(...given)) {
        if (performance.now() > last) throw new Error(`never: ${found}`);
        await new Promise((done) => setTimeout(done, 20));
    } }"""


def find_firefox() -> str | None:
    """Where a Firefox is installed."""
    return shutil.which("firefox-esr") or shutil.which("firefox")


class Firefox:
    """One tab of a headless Firefox with a profile of its own.

    Attributes:
        complaints: errors that its pages logged (a broken policy is one), requests that
            failed, and requests for what is not `own`.
    """

    def __init__(self, path: str, profile: Path, own: str):
        command = [path, "--headless", "--no-remote", "--profile", profile]
        self._process = subprocess.Popen(
            [*command, "--remote-debugging-port", "0"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        self._own = (own, "data:", "blob:", "about:")
        self._sent = 0
        self._awaited: set[str] = set()  # requests under way
        self.complaints: list[str] = []
        try:
            where = self._address(profile / "WebDriverBiDiServer.json")
            self._socket = websocket.create_connection(
                where, timeout=PATIENCE, suppress_origin=True
            )
            self.send("session.new", capabilities={})
            events = ["log.entryAdded", "network.beforeRequestSent"]
            events += ["network.fetchError", "network.responseCompleted"]
            self.send("session.subscribe", events=events)
            tabs = self.send("browsingContext.getTree")["contexts"]
            self._tab = tabs[0]["context"]
        except BaseException:
            self._process.kill()
            raise

    def _address(self, told: Path) -> str:
        """Of the server, which writes it into the profile when it is up."""
        last = time.monotonic() + PATIENCE
        while time.monotonic() < last and self._process.poll() is None:
            try:
                at = json.loads(told.read_text("utf-8"))
                return f"ws://{at['ws_host']}:{at['ws_port']}/session"
            except (OSError, ValueError):  # not there, or not all of it
                time.sleep(0.05)
        raise RuntimeError(f"Firefox does not start: exit {self._process.poll()}")

    def close(self) -> None:
        """At once: nothing of its profile is kept."""
        self._process.kill()
        self._process.wait()

    def send(self, method: str, **params) -> dict:
        """What Firefox answers; events that come before the answer are looked at.

        Raises:
            RuntimeError: it refuses.
        """
        self._sent += 1
        command = {"id": self._sent, "method": method, "params": params}
        self._socket.send(json.dumps(command))
        while True:
            got = json.loads(self._socket.recv())
            if got["type"] == "event":
                self._hear(got["method"], got["params"])
            elif got["id"] == self._sent and got["type"] == "error":
                raise RuntimeError(f"{method}: {got['message']}")
            elif got["id"] == self._sent:
                return got["result"]

    def _hear(self, event: str, said: dict) -> None:
        if event == "log.entryAdded":
            if said["level"] == "error" and not said["text"].startswith(HALF):
                self.complaints.append(said["text"])
            return
        url = said["request"]["url"]
        if event == "network.beforeRequestSent":
            self._awaited.add(said["request"]["request"])
        else:
            self._awaited.discard(said["request"]["request"])
        if event == "network.fetchError":
            if said["errorText"] != LEFT:
                self.complaints.append(f"{url}: {said['errorText']}")
        elif not url.startswith(self._own):
            self.complaints.append(f"foreign request: {url}")
        elif said.get("response", {}).get("status", 0) >= 400:
            self.complaints.append(f"{url}: HTTP {said['response']['status']}")

    def open(self, url: str) -> None:
        """Until the page is loaded, fonts too, and all that it asks for has come.

        A page that is left while a script of it comes complains of that.
        """
        self._awaited.clear()
        self.send(
            "browsingContext.navigate", context=self._tab, url=url, wait="complete"
        )
        self.evaluate("async () => { await document.fonts.ready; }")
        last = time.monotonic() + PATIENCE
        quiet = False
        while not quiet and time.monotonic() < last:
            was = not self._awaited
            self.evaluate("() => new Promise((done) => setTimeout(done, 50))")
            quiet = was and not self._awaited

    def evaluate(self, function: str, *given):
        """What a JavaScript function of the page answers, for arguments as of JSON.

        Raises:
            RuntimeError: it threw.
        """
        answer = self.send(
            "script.callFunction",
            functionDeclaration=f"""async (given) =>
                JSON.stringify(await ({function})(...JSON.parse(given))) ?? "null" """,
            arguments=[{"type": "string", "value": json.dumps(given)}],
            target={"context": self._tab},
            awaitPromise=True,
        )
        if answer["type"] == "exception":
            raise RuntimeError(answer["exceptionDetails"]["text"])
        return json.loads(answer["result"]["value"])

    def wait_for(self, function: str, *given) -> None:
        """Until the function answers yes.

        Raises:
            RuntimeError: it never did.
        """
        self.evaluate(UNTIL % function, PATIENCE * 1000, *given)

    def type(self, *keys: str) -> None:
        """Into what has the focus: names of `KEYS`, or text."""
        pressed = [key for name in keys for key in KEYS.get(name, name)]
        self.send(
            "input.performActions",
            context=self._tab,
            actions=[
                {
                    "type": "key",
                    "id": "keyboard",
                    "actions": [
                        {"type": kind, "value": key}
                        for key in pressed
                        for kind in ("keyDown", "keyUp")
                    ],
                }
            ],
        )
