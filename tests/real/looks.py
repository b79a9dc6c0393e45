"""Does an archived site look as it does live?

    looks.py JOB LIVE FOLDER PATH...

Replays the archive of JOB with pywb, by the crawl's own index; takes pictures of pages with Chromium,
live (LIVE is an origin) and replayed, each in a frame that is as large as the window; and prints as
JSON, for each PATH, the share of pixels that differ and the share that are not of the commonest color:
an empty page has none of these. The pictures are left in FOLDER as NAME-live.png and NAME-replayed.png.

Requests of the browser to anything but these two are refused by its own rules for host names.
"""

# First, since it patches the standard library.
from pywb_app import replaying

import html
import json
import os
import pathlib
import subprocess
import sys

import gevent.pywsgi
from PIL import Image, ImageChops

SIZE = (1280, 1600)
FRAMES = "/frame/"
FRAME = """<!DOCTYPE html><style>* {{ margin: 0; border: 0 }}</style>
<iframe src="{url}" width="{width}" height="{height}"></iframe>"""
# What a script may still do after the page is there, in the browser's own time.
SETTLED_MS = 5_000
PICTURE_S = 120
TRIES = 12

def main(job, live, folder, paths):
    index = folder / "index.cdxj"
    lines = [line for file in (job / "index").iterdir() for line in file.read_bytes().splitlines(True)]
    index.write_bytes(b"".join(sorted(lines)))
    os.chdir(folder)
    app = replaying({"job": (index, f"{job}/warc/")})
    server = gevent.pywsgi.WSGIServer(("127.0.0.1", 0), framed(app), log=None)
    server.start()
    ours = f"http://127.0.0.1:{server.server_port}"
    found = {}
    for path in paths:
        name = path.strip("/").replace("/", "-").removesuffix(".html") or "root"
        # `mp_`: the page as pywb shows it in a frame of its own, below its banner.
        replayed = f"{ours}/job/2mp_/{live}{path}"
        pictures = [folder / f"{name}-{kind}.png" for kind in ("live", "replayed")]
        for url, file in zip((live + path, replayed), pictures):
            settle(f"{ours}{FRAMES}{url}", file, folder / "browser")
        found[path] = compare(*pictures)
    print(json.dumps(found), file=sys.__stdout__)


def framed(app):
    """Serves pywb, and pages that show another one in a frame as large as the window.

    Outside of a frame pywb's script leads to a frame of its own, with a banner. Frame and page are
    of one site (ports make no difference), so the browser's own time stops for both while one loads.
    """

    def serve(environ, start_response):
        if not environ["PATH_INFO"].startswith(FRAMES):
            return app(environ, start_response)
        start_response("200 OK", [("Content-Type", "text/html")])
        url = environ["PATH_INFO"].removeprefix(FRAMES)
        return [FRAME.format(url=html.escape(url), width=SIZE[0], height=SIZE[1]).encode()]

    return serve


def settle(url, file, profile):
    """Takes pictures until two in a row are equal: on a busy machine some show half a page or none."""
    before = None
    for _ in range(TRIES):
        take(url, file, profile)
        picture = file.read_bytes()
        if picture == before and drawn(Image.open(file)) > 0.01:
            return
        before = picture
    raise SystemExit(f"{url}: {TRIES} pictures are empty, or no two in a row are equal")


def take(url, file, profile):
    words = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
    words += [f"--user-data-dir={profile}", f"--window-size={SIZE[0]},{SIZE[1]}"]
    words += ["--run-all-compositor-stages-before-draw"]
    words += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"]
    words += [f"--virtual-time-budget={SETTLED_MS}", f"--screenshot={file}", url]
    gone = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(words, check=True, timeout=PICTURE_S, **gone)


def compare(live, replayed):
    one, other = (Image.open(file).convert("RGB") for file in (live, replayed))
    pixels = one.width * one.height
    if one.size != other.size:
        return {"differs": 1.0, "drawn": 0.0}
    changed = ImageChops.difference(one, other).convert("L").point(lambda level: 255 * (level > 0))
    return {"differs": changed.histogram()[255] / pixels, "drawn": drawn(one)}


def drawn(picture):
    """The share of pixels that are not of the commonest color."""
    pixels = picture.width * picture.height
    return 1 - max(count for count, _ in picture.getcolors(pixels)) / pixels


main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], pathlib.Path(sys.argv[3]).resolve(), sys.argv[4:])
