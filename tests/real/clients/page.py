"""Opens pages in Chromium with the network off and says what a reader would meet.

    page.py CHROMIUM PAGE...

Prints JSON, a list with one object for each page: `console` (errors), `requests` (anything beside the page itself),
`overflow` (widths in pixels at which the page is wider than its window, by window), `axe` (violations, in light and in
dark), `rows` (tables without a row that can be seen), `sheets` (pages of its PDF).
"""

import json
import pathlib
import re
import sys

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import sync_playwright

WIDTHS = [390, 768, 1280]


def look(browser, path):
    address = pathlib.Path(path).resolve().as_uri()
    found = {"page": path, "console": [], "requests": [], "overflow": {}, "axe": []}
    context = browser.new_context(offline=True, viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.on("console", lambda said: found["console"].append(said.text) if said.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: found["console"].append(str(error)))
    page.on("request", lambda asked: found["requests"].append(asked.url) if asked.url != address else None)
    page.goto(address)
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 844})
        wide = page.evaluate("document.scrollingElement.scrollWidth")
        if wide > width:
            found["overflow"][width] = wide
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        # What is folded away is read too.
        page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        for fault in Axe().run(page).response["violations"]:
            places = [node["html"][:160] for node in fault["nodes"][:3]]
            found["axe"].append({"scheme": scheme, "id": fault["id"], "help": fault["help"], "places": places})
    page.emulate_media(color_scheme="light")
    found["rows"] = page.evaluate("[...document.querySelectorAll('table')].filter(one => !one.tBodies[0]?.rows.length).length")
    # A reader who uses the keyboard reaches every part that scrolls.
    found["unreachable"] = page.evaluate(
        "[...document.querySelectorAll('.box')].filter(one => one.scrollWidth > one.clientWidth && one.tabIndex < 0).length"
    )
    page.evaluate("document.querySelectorAll('details').forEach(one => one.open = false)")
    found["sheets"] = len(re.findall(rb"/Type\s*/Page[^s]", page.pdf(prefer_css_page_size=True)))
    context.close()
    return found


def main():
    chromium, *pages = sys.argv[1:]
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=chromium,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"],
        )
        print(json.dumps([look(browser, page) for page in pages]))
        browser.close()


main()
