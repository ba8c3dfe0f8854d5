"""Makes the pictures of docs/workbench.md: runs the examples and photographs their pages in a browser without a window.

    python3 tools/pictures.py [--command target/release/nki-sim] [--browser chromium] [--out target/workbench]

Needs Chromium; nothing is loaded from the network. The pictures are not committed.
"""

import argparse
import base64
import json
import os
import pathlib
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
WIDE, NARROW = (1440, 900), (390, 844)

ATTENTION = ["flash_attention.py", "--arg", "q_t=bfloat16[128,2048]", "--arg", "k_t=bfloat16[128,2048]", "--arg", "v=bfloat16[2048,128]", "--no-numerics"]
TWO_CORES = ["two_cores.py", "--kernel", "row_norms", "--lnc", "2", "--arg", "x=float32[128,1024]"]
FAULTY = '''import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def faulty(x):
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    unwritten = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=x)
    nisa.activation(dst=tile, op=nl.log, data=tile)
    nisa.tensor_tensor(dst=tile, data1=tile, data2=unwritten, op=nl.add)
    nisa.dma_copy(dst=out, src=tile)
    return out
'''


class Browser:
    """A browser driven over its DevTools protocol: messages of JSON, each ended by a zero byte, through two pipes."""

    def __init__(self, binary):
        self.profile = tempfile.mkdtemp()
        command = [binary, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        command += ["--disable-component-update", "--disable-sync", "--hide-scrollbars", "--remote-debugging-pipe", f"--user-data-dir={self.profile}"]
        # The browser reads from descriptor 3 and writes to 4.
        line = f"exec {shlex.join(command)} 3<&0 4>&1 1>/dev/null 2>/dev/null"
        self.process = subprocess.Popen(["sh", "-c", line], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number, self.buffer, self.session = 0, b"", None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Page.enable")

    def call(self, method, **params):
        """The result of a method of the protocol."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.process.stdin.write(json.dumps(message).encode() + b"\0")
        self.process.stdin.flush()
        while True:
            while b"\0" not in self.buffer:
                part = os.read(self.process.stdout.fileno(), 1 << 20)
                if not part:
                    raise RuntimeError("the browser has ended")
                self.buffer += part
            text, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(text)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def eval(self, code):
        """The value of an expression on the page."""
        result = self.call("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{code}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, page, size, dark):
        """Opens a page and waits until it is ready."""
        width, height = size
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=page)
        for _ in range(3000):
            if self.eval("document.body?.dataset.ready ?? ''") == "1":
                return
            time.sleep(0.02)
        raise RuntimeError(f"{page} is not ready")

    def picture(self, path, whole):
        """Writes what is in the window, or the whole page."""
        more = {}
        if whole:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            more = {"clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}}
        image = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole, **more)["data"]
        path.write_bytes(base64.b64decode(image))

    def close(self):
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


def run(command, folder, kernel, *more):
    """Runs a kernel in the folder; findings may deny it."""
    file = kernel[0] if (folder / kernel[0]).exists() else str(ROOT / "examples" / kernel[0])
    subprocess.run([command, "run", file, *kernel[1:], *more], cwd=folder, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def pages(command, folder):
    """Makes the pages."""
    (folder / "faulty.py").write_text(FAULTY)
    run(command, folder, ATTENTION, "--html", "attention.html", "--json", "after.json")
    run(command, folder, ATTENTION, "--set", "dma.bytes_per_ns=5", "--json", "before.json")
    run(command, folder, TWO_CORES, "--html", "two_cores.html")
    run(command, folder, ["faulty.py", "--arg", "x=float32[128,512]"], "--html", "findings.html")
    subprocess.run([command, "compare", "before.json", "after.json", "--html", "compare.html"], cwd=folder, check=True, stdout=subprocess.DEVNULL)


# Name, page with what is selected, window, dark, script on the page, the whole page.
PICTURES = [
    ("overview", "attention.html", WIDE, False, "", True),
    ("event", "attention.html#event=400&view=52000-62000", WIDE, False, "", False),
    ("range", "attention.html#range=60000-90000", WIDE, False, "document.getElementById('tab-causes').click()", True),
    ("search", "attention.html", WIDE, False, "const s = document.getElementById('search'); s.focus(); s.value = 'transpose'; s.dispatchEvent(new Event('input'))", False),
    ("tensor", "attention.html#tensor=30&view=15000-40000", WIDE, True, "document.getElementById('tab-tensors').click()", True),
    ("two_cores", "two_cores.html", WIDE, False, "", False),
    ("findings", "findings.html", WIDE, False, "", False),
    ("phone", "attention.html", NARROW, True, "", False),
    ("phone_tables", "attention.html", NARROW, False, "document.querySelector('#tab-lines').scrollIntoView()", False),
    ("compare", "compare.html", WIDE, False, "", True),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--command", default=str(ROOT / "target/release/nki-sim"))
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "target/workbench")
    options = parser.parse_args()
    if shutil.which(options.browser) is None:
        sys.exit(f"no {options.browser}: install Chromium, or name another browser with --browser")
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        pages(os.path.abspath(options.command), folder)
        browser = Browser(options.browser)
        try:
            for name, page, size, dark, script, whole in PICTURES:
                browser.open(f"file://{folder}/{page}", size, dark)
                if script:
                    browser.eval(script)
                    browser.eval("new Promise((done) => setTimeout(done, 300))")
                path = options.out / f"{name}.png"
                browser.picture(path, whole)
                print(path)
        finally:
            browser.close()


if __name__ == "__main__":
    main()
