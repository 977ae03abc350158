#!/usr/bin/env python3
"""report_in_browser.py RINGSIM PICTURES [--update]: reports, as a browser shows them.

A page must load without a request, without a word in the console and within 3 s, fit on a phone, be dark in dark mode
and printable. Every picture in it must be drawn as PICTURES has it, with each text inside of the picture and on no other
text. --update replaces PICTURES: look at each. If no Chromium is installed the exit code is 77.
"""
import base64
import json
import pathlib
import subprocess
import sys
import tempfile
import time

from browser import Browser, find_chromium

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
MOST_SECONDS = 3.0
# Pictures are stored at a quarter of their width and height: how letters are smoothed counts little, and the files are
# small.
SHRINK = 4
# The share of pixels of which a color differs by more than 40 of 255. All text in another font, DejaVu Serif: 0.005; one
# link of eight missing: 0.0013; a bar half as long: 0.02; the same page in the same font: 0.
MOST_DIFFERENT = 1 / 1000
# Which font `system-ui` is depends on the machine.
FONT = "'DejaVu Sans'"
USE_FONT = f"document.head.insertAdjacentHTML('beforeend', `<style>body, svg.chart {{ font-family: {FONT} !important }}</style>`)"
# The letter m is 974 px wide in this font at 1000 px.
FONT_IS_THERE = f"""(() => {{
  const context = document.createElement('canvas').getContext('2d')
  context.font = "1000px {FONT}"
  return Math.round(context.measureText('m').width) === 974
}})()"""

THOUSAND_POINTS = {
    "version": 1, "name": "a thousand points",
    "topology": {"kind": "star", "ranks": 8, "link": {"bandwidth": "10 GB/s", "latency": "1 us"}},
    "collective": {"op": "all_reduce", "algorithm": ["ring", "recursive_doubling", "halving_doubling", "direct"],
                   "bytes": {"from": "4 kB", "to": "1 MB", "step": "4 kB"}}}
# Which link carries how much is seen in the picture, so that the machine is drawn with its loads.
GPUS_512 = {
    "version": 1, "name": "512 GPUs",
    "topology": {"kind": "cluster", "node": "dgx-a100", "nodes": 64,
                 "fabric": {"kind": "leaf_spine", "nodes_per_leaf": 8, "spines": 4,
                            "link": {"bandwidth": "200 Gb/s", "latency": "1 us"}}},
    "collective": {"op": "all_reduce", "algorithm": "halving_doubling", "bytes": "64 MiB"}}
WHY = "scenarios/examples/explain/"
TABLES = "validate/measured/tables/"
# The name of each page's pictures, and the command that writes it: words, files of the repository, scenarios.
PAGES = {"two-dgx-a100": ["run", "scenarios/two-dgx-a100.json"],
         "degraded-nic": ["run", WHY + "degraded-nic.json"],
         "exposed-bucket": ["run", WHY + "exposed-bucket.json"],
         "server-incast": ["run", WHY + "server-incast.json"],
         "thousand-points": ["sweep", THOUSAND_POINTS],
         "512-gpus": ["run", GPUS_512],
         "abci-compared": ["compare", "scenarios/examples/machines/abci-v100.json",
                           TABLES + "abci-v100-2n4g-all_reduce.csv"],
         "gpudirect-diff": ["diff", WHY + "gpudirect-off.json", WHY + "gpudirect-off.json", "--set-b",
                            "transport.gpudirect=true"]}

# Those of links appear after a click.
SHOWN = "[...document.querySelectorAll('svg.chart')].filter(svg => svg.getBoundingClientRect().width > 0)"
BOXES = SHOWN + """.map(svg => {
  const box = svg.getBoundingClientRect()
  return [box.x + scrollX, box.y + scrollY, box.width, box.height]
})"""

# What is wrong with the texts of a picture: names of those outside of it, and pairs of which one is on the other.
MISPLACED_TEXTS = SHOWN + """.flatMap((svg, i) => {
  const page = svg.viewBox.baseVal, wrong = []
  const texts = [...svg.querySelectorAll('text')].map(text => {
    const box = text.getBBox()
    return {name: text.textContent, left: box.x, right: box.x + box.width, top: box.y + box.height / 4,
            bottom: box.y + 3 * box.height / 4}  // the letters themselves
  })
  for (const text of texts)
    if (text.left < -0.5 || text.right > page.width + 0.5 || text.top < 0 || text.bottom > page.height)
      wrong.push(`picture ${i}: "${text.name}" reaches from ${text.left} to ${text.right} of ${page.width}`)
  texts.sort((a, b) => a.top - b.top)
  for (let j = 0; j < texts.length; ++j)
    for (let k = j + 1; k < texts.length && texts[k].top < texts[j].bottom; ++k)
      if (texts[k].left < texts[j].right - 0.5 && texts[j].left < texts[k].right - 0.5)
        wrong.push(`picture ${i}: "${texts[k].name}" is on "${texts[j].name}"`)
  return wrong
})"""

# The point at which the first link of a picture can be clicked: x and y in the window, and what the click leads to.
FIRST_LINK = """(() => {
  const line = document.querySelector('.chart a .hit')
  if (line === null) return null
  line.scrollIntoView({block: 'center', inline: 'center'})
  const at = line.getPointAtLength(0.3 * line.getTotalLength()), m = line.getScreenCTM()
  return [m.a * at.x + m.c * at.y + m.e, m.b * at.x + m.d * at.y + m.f, line.parentNode.getAttribute('href')]
})()"""
CHOSEN = "[...document.querySelectorAll('.choice')].filter(part => part.offsetHeight > 0).map(part => '#' + part.id)"

# Both pictures, as data URLs, on canvases of the second one's size: the share of pixels that differ, and the first one.
COMPARE = """(async (taken, stored, width, height) => {
  const pixels = async url => {
    const image = new Image()
    image.src = url
    await image.decode()
    const canvas = document.createElement('canvas')
    Object.assign(canvas, {width, height})
    const context = canvas.getContext('2d')
    context.imageSmoothingQuality = 'high'
    context.drawImage(image, 0, 0, width, height)
    return [canvas, context.getImageData(0, 0, width, height).data, image]
  }
  const [canvas, now] = await pixels(taken)
  if (stored === null) return {picture: canvas.toDataURL('image/png')}
  const [, before, image] = await pixels(stored)
  if (image.width !== width || image.height !== height)
    return {share: 1, because: `it was ${image.width} x ${image.height}, is ${width} x ${height}`}
  let different = 0
  for (let i = 0; i < now.length; i += 4)
    different += Math.max(...[0, 1, 2].map(c => Math.abs(now[i + c] - before[i + c]))) > 40
  return {share: different * 4 / now.length, picture: canvas.toDataURL('image/png')}
})"""


def data_url(png):
    return "data:image/png;base64," + base64.b64encode(png).decode()


class Failures:
    def __init__(self):
        self.found = []

    def require(self, condition, text):
        if not condition:
            self.found.append(text)
            print("FAILED:", text)


def write_report(ringsim, command, folder, name):
    page = pathlib.Path(folder, name + ".html")
    words = []
    for word in command:
        if isinstance(word, dict):
            path = pathlib.Path(folder, name + ".json")
            path.write_text(json.dumps(word))
            word = str(path)
        words.append(str(REPOSITORY / word) if "/" in word else word)
    subprocess.run([ringsim, *words, "--report", str(page)], check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    return page


def compare_pictures(browser, name, shots, folder, update, failures):
    stored = sorted(folder.glob(name + "-*.png"))
    failures.require(update or len(stored) == len(shots),
                     f"{name}: {len(shots)} pictures are drawn, {len(stored)} are stored in {folder}")
    browser.open("about:blank")
    for i, (png, box) in enumerate(shots):
        path = folder / f"{name}-{i}.png"
        size = [max(1, round(length / SHRINK)) for length in box[2:]]
        before = data_url(path.read_bytes()) if path.exists() and not update else None
        arguments = ", ".join(json.dumps(each) for each in (data_url(png), before, *size))
        found = browser.evaluate(f"{COMPARE}({arguments})")
        if update:
            path.write_bytes(base64.b64decode(found["picture"].split(",")[1]))
        elif before:
            print(f"{name}-{i}: {100 * found['share']:.2f} % of the pixels differ")
            failures.require(found["share"] <= MOST_DIFFERENT, f"{path}: {found['share']:.4f} of the pixels differ; " +
                             found.get("because", "look at it, then --update"))


def check_click(browser, require):
    """A click on a link shows who used it, and nothing else."""
    require(browser.evaluate(CHOSEN) == [], "a link is shown before a click")
    link = browser.evaluate(FIRST_LINK)
    require(link is not None, "no link can be clicked")
    if link is None:
        return
    for event in ("mousePressed", "mouseReleased"):
        browser.call("Input.dispatchMouseEvent", type=event, x=link[0], y=link[1], button="left", clickCount=1)
    until = time.monotonic() + 5
    while browser.evaluate(CHOSEN) != [link[2]] and time.monotonic() < until:
        time.sleep(0.02)
    require(browser.evaluate(CHOSEN) == [link[2]], f"a click on {link[2]} shows {browser.evaluate(CHOSEN)}")
    for text in browser.evaluate(MISPLACED_TEXTS):
        require(False, text)


def check_page(browser, name, page, pictures, update, failures, has_topology):
    url = page.as_uri()
    require = lambda condition, text: failures.require(condition, f"{name}: {text}")
    seconds = min(browser.open(url) for _ in range(2))  # another process may be in the way of one
    print(f"{name}: {page.stat().st_size / 1e3:.0f} kB, shown after {seconds:.2f} s")
    require(seconds < MOST_SECONDS, f"shown after {seconds:.2f} s, expected less than {MOST_SECONDS} s")
    browser.evaluate(USE_FONT)
    boxes = browser.evaluate(BOXES)
    require(len(boxes) > 0, "no picture is drawn")
    require(all(box[2] > 100 and box[3] > 20 for box in boxes), f"a picture has no size: {boxes}")
    for text in browser.evaluate(MISPLACED_TEXTS):
        require(False, text)
    # Whole pictures, also those that scroll in the page.
    width = max(box[2] for box in boxes)
    browser.call("Emulation.setDeviceMetricsOverride", width=int(width) + 200, height=900, deviceScaleFactor=1, mobile=False)
    browser.evaluate("document.body.style.maxWidth = 'none'")
    boxes = browser.evaluate(BOXES)
    shots = [(browser.picture(box), box) for box in boxes]
    browser.evaluate("document.body.style.maxWidth = ''")
    if has_topology:
        check_click(browser, require)

    require(len(browser.evaluate("[...document.querySelectorAll('.wide')].filter(wide => wide.tabIndex !== 0)")) == 0,
            "what scrolls is not reached by keyboard")
    browser.call("Emulation.setDeviceMetricsOverride", width=390, height=844, deviceScaleFactor=1, mobile=True)
    phone = browser.evaluate("document.documentElement.scrollWidth")
    require(phone <= 390, f"{phone} px wide on a phone of 390 px")
    browser.call("Emulation.clearDeviceMetricsOverride")
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = browser.evaluate("getComputedStyle(document.body).backgroundColor")
    require(dark == "rgb(22, 25, 29)", f"the page is {dark} in dark mode")
    browser.call("Emulation.setEmulatedMedia", features=[])
    require(base64.b64decode(browser.call("Page.printToPDF")["data"]).startswith(b"%PDF"), "it cannot be printed")
    require(browser.requests() == [url], f"it asks for {browser.requests()}")
    require(browser.complaints() == [], f"the console shows {browser.complaints()}")
    compare_pictures(browser, name, shots, pictures, update, failures)


def check_checks(browser, folder, failures):
    """A page with every fault: what finds nothing wrong with it checks nothing."""
    page = pathlib.Path(folder, "faulty.html")
    page.write_text("<!doctype html><img src='https://ringsim.example/a.png'><script>console.log('hello')</script>"
                    "<svg class='chart' width='200' height='50' viewBox='0 0 200 50'><text x='190' y='20'>too long</text>"
                    "<text x='180' y='22'>on it</text></svg>")
    browser.open(page.as_uri())
    failures.require(len(browser.requests()) == 2, "a request was not seen")
    failures.require(any("hello" in text for text in browser.complaints()), "a word in the console was not seen")
    failures.require(len(browser.evaluate(MISPLACED_TEXTS)) == 3, "misplaced texts were not seen")


def main(ringsim, pictures, update):
    chromium = find_chromium()
    if chromium is None:
        print("no Chromium is installed (Debian: chromium-headless-shell): no page is looked at")
        return 77
    folder = pathlib.Path(pictures)
    failures = Failures()
    with tempfile.TemporaryDirectory() as pages, Browser(chromium) as browser:
        if not browser.evaluate(FONT_IS_THERE):
            print("the font DejaVu Sans is not installed (Debian: fonts-dejavu-core): no page is looked at")
            return 77
        check_checks(browser, pages, failures)
        for name, command in PAGES.items():
            page = write_report(ringsim, command, pages, name)
            check_page(browser, name, page, folder, update, failures, has_topology=command[0] in ("run", "sweep"))
    print(f"{len(PAGES)} pages, {len(failures.found)} failures")
    return 1 if failures.found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], "--update" in sys.argv[3:]))
