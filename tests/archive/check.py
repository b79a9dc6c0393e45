"""Checks a WACZ file with Python alone, and replays its pages by pywb.

    check.py FILE.wacz replay|read

The digests are those of the members; all members are stored; the index is sorted, each line of it
leads to a record of its URL, and each block of it is where the list says. Each page has a line in
the index, and pywb shows it; in a part of an archive, a page may repeat one that is not there.
Prints what there was as JSON; with a mistake it ends with 1.
"""

# First, since it patches the standard library.
from pywb_app import replaying

import gzip
import hashlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile

from warcio.archiveiterator import ArchiveIterator
from werkzeug.test import Client


def main(path, how):
    package = zipfile.ZipFile(path)
    expect(package.testzip(), None, "all checksums are right")
    described = json.loads(package.read("datapackage.json"))
    digest = json.loads(package.read("datapackage-digest.json"))
    expect(digest["hash"], sha256(package.read(digest["path"])), "the digest of the list")
    listed = {member["path"]: member for member in described["resources"]}
    for member in package.infolist():
        expect(member.compress_type, zipfile.ZIP_STORED, member.filename)
        if not member.filename.startswith("datapackage"):
            data = package.read(member.filename)
            own = listed.pop(member.filename)
            expect((own["bytes"], own["hash"]), (len(data), sha256(data)), member.filename)
    expect(listed, {}, "all that is listed is there")
    lines = index_of(package)
    captures = set()
    for line in lines:
        surt, stamp, fields = line.split(" ", 2)
        fields = json.loads(fields)
        warc, start = package.read(f"archive/{fields['filename']}"), int(fields["offset"])
        record = next(ArchiveIterator(io.BytesIO(warc[start : start + int(fields["length"])])))
        expect(record.rec_headers["WARC-Target-URI"], fields["url"], line)
        captures.add((fields["url"], stamp))
    pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]
    expect(pages.pop(0)["format"], "json-pages-1.0", "the head of the pages")
    for page in pages:
        stamp = re.sub(r"[^0-9]", "", page["ts"])
        expect((page["url"], stamp) in captures, True, f"{page} is archived")
    expect(len({page["id"] for page in pages}), len(pages), "ids of pages differ")
    if how == "replay":
        replay(path, pages)
    seeds = [page["url"] for page in pages if page.get("seed")]
    expect(described.get("mainPageUrl"), seeds[0] if seeds else None, "the first seed is the main page")
    warcs = sum(name.startswith("archive/") for name in package.namelist())
    digest = sha256("".join(lines).encode())
    counts = {"captures": len(lines), "pages": len(pages), "seeds": len(seeds), "warcs": warcs}
    print(json.dumps({**counts, "index": digest}), file=sys.__stdout__)


def index_of(package):
    """The lines of the index, by its blocks as by all of it."""
    data = package.read("indexes/index.cdx.gz")
    lines = gzip.decompress(data).decode().splitlines(True)
    expect(lines, sorted(lines), "the index is sorted")
    head, *blocks = package.read("indexes/index.idx").decode().splitlines()
    expect(head.startswith('!meta 0 {"format": "cdxj-gzip-1.0"'), True, head)
    found = []
    for block in blocks:
        key, place = block.split(" {", 1)
        place = json.loads("{" + place)
        part = data[place["offset"] : place["offset"] + place["length"]]
        part = gzip.decompress(part).decode().splitlines(True)
        expect(part[0].startswith(key + " {"), True, f"{key} begins its block")
        found += part
    expect(found, lines, "the blocks are the index")
    return lines


def replay(path, pages):
    """Adds the package to a collection of pywb, as its users do, and asks for all pages."""
    with tempfile.TemporaryDirectory() as folder:
        manager = os.path.join(os.path.dirname(sys.executable), "wb-manager")
        for command in (["init", "site"], ["add", "--unpack-wacz", "site", path]):
            subprocess.run([manager, *command], cwd=folder, check=True, capture_output=True)
        os.chdir(folder)
        home = f"{folder}/collections/site"
        client = Client(replaying({"site": (f"{home}/indexes/", f"{home}/archive/")}))
        for page in pages:
            stamp = re.sub(r"[^0-9]", "", page["ts"])
            reply = client.get(f"/site/{stamp}id_/{page['url']}")
            expect((reply.status_code, b"<" in reply.data), (200, True), page["url"])
        os.chdir("/")


def sha256(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def expect(got, wanted, where):
    if got != wanted:
        print(f"{got!r}, not {wanted!r}: {where}", file=sys.__stdout__, flush=True)
        os._exit(1)


main(os.path.abspath(sys.argv[1]), sys.argv[2])
