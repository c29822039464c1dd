"""Pages in headless Chromium, of a real run and of sweeps: `python3 browser_test.py FOLDER_OF_PROGRAMS [SCREENSHOTS]`.

They must say nothing on the console, ask for nothing on the network, fit a window of 400 pixels, and be readable in light
and dark mode: text of contrast 4.5 to 1, charts with alternative texts, labels that do not cover each other. Pages that
are broken on purpose show that each of these would be found. Exit code 77: no Chromium here.
"""

import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

import browser

RECIPE = """name: page
batch: 32
device: cpu
data: {name: generated_digits, count: 200, size: 16}
model: {name: resnet9, width: 4}
phases:
  - {name: head, epochs: 1, freeze_to: -1, lr: 1.0e-2}
  - {name: all-layers, epochs: 8, lr: 1.0e-2}
test: true
export: page.tare
"""
MAX_BYTES = 1 << 20
WIDTHS = (400, 1200)
SCHEMES = ("light", "dark")

# What is wrong with the page as it is shown, a line for each mistake.
CHECK = r"""(() => {
  document.querySelectorAll('details').forEach(d => d.open = true);
  const wrong = [];
  const wide = document.documentElement.scrollWidth;
  if (wide > innerWidth) wrong.push(`scrolls sideways: ${wide} of ${innerWidth} pixels`);

  for (const svg of document.querySelectorAll('svg')) {
    if (svg.getAttribute('aria-hidden') === 'true' || svg.parentElement.closest('svg')) continue;
    const name = svg.getAttribute('aria-label') || svg.querySelector(':scope > title')?.textContent;
    if (svg.getAttribute('role') !== 'img' || !name?.trim()) wrong.push('svg without role or alternative text');
  }

  // `rgb(r, g, b)`, `rgba(r, g, b, a)`, or `color(srgb r g b / a)` of a mixed colour, with r, g and b from 0 to 1.
  const channels = text => {
    const all = text.match(/\d[\d.]*(e-\d+)?/g).map(Number);
    return text.startsWith('color(') ? [...all.slice(0, 3).map(c => 255 * c), ...all.slice(3)] : all;
  };
  const luminance = ([r, g, b]) => [r, g, b].map(c => c / 255)
      .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = element => {
    const layers = [];
    for (; element && (layers.at(-1)?.[3] ?? 0) < 1; element = element.parentElement) {
      const [r, g, b, a = 1] = channels(getComputedStyle(element).backgroundColor);
      layers.push([r, g, b, a]);
    }
    return layers.reduceRight((under, [r, g, b, a]) => [r, g, b].map((c, i) => a * c + (1 - a) * under[i]),
                              [255, 255, 255]);
  };
  // Where a chart's text is seen: an inner svg clips it.
  const seen = element => {
    const {left, right, top, bottom, width} = element.getBoundingClientRect(), svg = element.ownerSVGElement;
    if (svg.getAttribute('role') === 'img') return {left, right, top, bottom, width};
    const start = svg.getScreenCTM().e, end = start + svg.width.baseVal.value;
    return {left: Math.max(left, start), right: Math.min(right, end), top, bottom, width};
  };
  const labels = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.data.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest('title, desc, script')) continue;
    const style = getComputedStyle(element), drawn = element instanceof SVGElement;
    const pair = [channels(drawn ? style.fill : style.color), behind(element)].map(luminance).sort((a, b) => a - b);
    const contrast = (pair[1] + 0.05) / (pair[0] + 0.05);
    if (contrast < 4.5) wrong.push(`contrast ${contrast.toFixed(2)}: ${text}`);
    if (parseFloat(style.fontSize) < 12) wrong.push(`small: ${text}`);
    if (drawn) labels.push([text, seen(element), element.closest('[role=img]')]);
  }
  labels.forEach(([text, a, chart], i) => {
    if (a.left < 0 || a.right > innerWidth + 0.5 || a.right - a.left < Math.min(a.width, 40) - 1)
      wrong.push(`cut off: ${text}`);
    for (const [other, b, its] of labels.slice(i + 1))
      if (its === chart && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
          Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 3)
        wrong.push(`over each other: ${text}, ${other}`);
  });
  return wrong;
})()"""

# What to put into the page, before its end or in place of its policy, and what must then be found.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
BROKEN = {
    "exceptionThrown": ("<script>absent()</script>", "script-src 'unsafe-inline'"),
    "consoleAPICalled": ("<script>console.log('x')</script>", "script-src 'unsafe-inline'"),
    "requestWillBeSent": ("<img src='absent.png' alt=''>", "img-src *"),
    "entryAdded": ("<img src='http://127.0.0.1:9/x.png' alt=''>", POLICY),
    "scrolls sideways": ("<div style='width:900px'>.</div>", POLICY),
    "svg without role": ("<svg width='9' height='9'></svg>", POLICY),
    "contrast": ("<p style='color:#888'>pale</p>", POLICY),
    "small": ("<p style='font-size:8px'>tiny</p>", POLICY),
    "cut off": ("<svg role='img'><title>t</title><text x='9' y='9' class='name'>" + 90 * "x" + "</text></svg>", POLICY),
    "over each other": ("<svg role='img'><title>t</title><text y='20'>one</text><text y='22'>two</text></svg>", POLICY),
}


def make_page(programs, folder):
    """Runs the recipe and reports on it; the path of the page."""
    (folder / "page.yaml").write_text(RECIPE)
    tare = programs / "tare"
    for arguments in (["run", "page.yaml", "--record-memory", "trace", "--call-sites"],
                      ["report", "runs/page", "--recording", "trace"]):
        subprocess.run([tare, *arguments], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return folder / "runs/page/report.html"


def make_sweep_pages(programs, folder):
    """Pages of a small and a large sweep, an empty one, and one whose names and numbers are as bad as can be."""
    subprocess.run([programs / "sweep_pages", folder], check=True)
    return sorted(folder.glob("*.html"))


def mistakes(tab, page, width, scheme):
    """What the browser says about the page, and what CHECK finds in it."""
    tab.open(page, width, scheme)
    found = tab.evaluate(CHECK)
    for event in tab.events:
        name = event["method"].split(".")[-1]
        request = event["params"].get("request", {}).get("url")
        if name in ("entryAdded", "consoleAPICalled", "exceptionThrown") or (
                name == "requestWillBeSent" and request != "file://" + str(page) and not request.startswith("data:")):
            found.append(f"{name}: {json.dumps(event['params'])[:300]}")
    return found


def check_other_files(trace):
    """Another program's readers take the files for viewers."""
    with open(trace / "snapshot.pickle", "rb") as file:
        assert pickle.load(file)["device_traces"][0], "the memory viewer's file has no events"
    with open(trace / "trace.json", encoding="utf-8") as file:
        events = json.load(file)["traceEvents"]
    assert {"C", "X"} <= {event["ph"] for event in events}, "the trace has no counters or no spans"
    assert all(event["dur"] >= 0 for event in events if event["ph"] == "X")
    stamps = [event["ts"] for event in events if event["ph"] == "C"]
    assert stamps == sorted(stamps), "the counters go back in time"
    for line in (trace / "peak.folded").read_text().splitlines():
        stack, _, count = line.rpartition(" ")
        assert stack and int(count) > 0, line


def main():
    if not browser.program():
        print("skipped: no Chromium is installed (Debian: apt-get install chromium)")
        return 77
    programs = pathlib.Path(sys.argv[1]).resolve()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="tare-page-") as name, browser.Browser() as tab:
        folder = pathlib.Path(name)
        page = make_page(programs, folder)
        check_other_files(folder / "trace")
        pages = [page, *make_sweep_pages(programs, folder)]
        found = []
        for one in pages:
            if one.stat().st_size > MAX_BYTES:
                found.append(f"{one.name}: {one.stat().st_size} bytes are too many")
            for width in WIDTHS:
                for scheme in SCHEMES:
                    found += [f"{one.name} {width} {scheme}: {text}" for text in mistakes(tab, one, width, scheme)]
                    if len(sys.argv) > 2:
                        tab.screenshot(os.path.join(sys.argv[2], f"{one.stem}-{width}-{scheme}.png"))
        for text in found:
            print(text)
        failures += len(found)
        for expected, (addition, policy) in BROKEN.items():
            broken = folder / "broken.html"
            text = page.read_text().replace(POLICY, policy + "; style-src 'unsafe-inline'" * (policy != POLICY))
            broken.write_text(text.replace("</main>", addition + "</main>"))
            if not any(expected in line for line in mistakes(tab, broken, WIDTHS[0], "light")):
                print(f"not found in a broken page: {expected}")
                failures += 1
    views = len(pages) * len(WIDTHS) * len(SCHEMES)
    print(f"{views} views of {len(pages)} pages, {len(BROKEN)} broken pages, {failures} mistakes")
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
