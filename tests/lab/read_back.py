"""Reads a crawl's archive back through its index, independently of the crawler.

    read_back.py JOB

Every line of the index is followed: the bytes it names must be one gzip member with one record, of
the line's URL, time and status, whose payload has the line's digest. A revisit must refer to a
record with that payload, by URL and date, and by name if it tells one (what an earlier run stored
is known without). Every response must have a line, and the request that belongs to it.
Prints what there was as JSON; with a mistake it tells it and exits with 1.
"""

import base64
import hashlib
import io
import json
import pathlib
import re
import sys
import zlib

from warcio.archiveiterator import ArchiveIterator


FIRST = "Refers-To-Target-URI", "Refers-To-Date", "Payload-Digest"


def main(job):
    lines = []
    for file in sorted((job / "index").iterdir()):
        text = file.read_text().splitlines()
        expect(text, sorted(text, key=str.encode), f"{file.name}: lines in order")
        lines += text
    files = {file.name: file.read_bytes() for file in sorted((job / "warc").iterdir())}
    counts = dict.fromkeys(["lines", "revisits", "chunked", "truncated", "robots"], 0)
    names, stored, revisits, places = {}, set(), [], set()
    for line in lines:
        key, stamp, fields = line.split(" ", 2)
        fields = json.loads(fields)
        record, block = follow(files, fields)
        headers = record.rec_headers
        expect(headers["WARC-Target-URI"], fields["url"], line)
        expect(re.sub(r"\D", "", headers["WARC-Date"])[:14], stamp, line)
        expect(record.http_headers.get_statuscode(), fields["status"], line)
        counts["lines"] += 1
        counts["robots"] += fields["url"].endswith("/robots.txt")
        counts["truncated"] += "truncated" in fields
        places.add((fields["filename"], int(fields["offset"])))
        digest = headers["WARC-Payload-Digest"]
        if record.rec_type == "revisit":
            expect(fields["mime"], "warc/revisit", line)
            expect(digest, "sha1:" + fields["digest"], line)
            revisits.append((headers, line))
            counts["revisits"] += 1
            continue
        expect(record.rec_type, "response", line)
        head, _, body = block.partition(b"\r\n\r\n")
        if re.search(rb"(?im)^transfer-encoding:\s*chunked", head):
            body = dechunk(body)
            counts["chunked"] += 1
        expect(digest, "sha1:" + fields["digest"], line)
        expect(base64.b32encode(hashlib.sha1(body).digest()).decode(), fields["digest"], line)
        first = fields["url"], headers["WARC-Date"], "sha1:" + fields["digest"]
        stored.add(first)
        names[headers["WARC-Record-ID"]] = first
    for headers, line in revisits:
        first = tuple(headers[f"WARC-{name}"] for name in FIRST)
        expect(first in stored, True, line)
        expect(names.get(headers["WARC-Refers-To"], first), first, line)
    every_record_is_indexed(files, places)
    print(json.dumps(counts))


def follow(files, fields):
    """The record that a line leads to, and its block."""
    offset, length = int(fields["offset"]), int(fields["length"])
    member = files[fields["filename"]][offset : offset + length]
    gzip = zlib.decompressobj(wbits=31)
    text = gzip.decompress(member)
    expect((gzip.eof, gzip.unused_data), (True, b""), fields)
    record = next(ArchiveIterator(io.BytesIO(member)))
    head, _, rest = text.partition(b"\r\n\r\n")
    block = rest[: int(re.search(rb"(?i)content-length: (\d+)", head)[1])]
    expect(rest[len(block) :], b"\r\n\r\n", fields)
    return record, block


def dechunk(body):
    """What was in chunks, as far as it came (RFC 9112, section 7.1)."""
    out, at = [], 0
    while (end := body.find(b"\r\n", at)) >= 0:
        size = int(body[at:end].split(b";")[0], 16)
        if size == 0:
            break
        out.append(body[end + 2 : end + 2 + size])
        at = end + 2 + size + 2
    return b"".join(out)


def every_record_is_indexed(files, places):
    for name, data in files.items():
        stream = ArchiveIterator(io.BytesIO(data))
        requests, responses = set(), set()
        for record in stream:
            headers = record.rec_headers
            if record.rec_type == "request":
                requests.add(headers["WARC-Concurrent-To"])
            elif record.rec_type != "warcinfo":
                responses.add(headers["WARC-Record-ID"])
                record.content_stream().read()
                place = (name, stream.get_record_offset())
                expect(place in places, True, f"a record without a line: {place}")
        expect(requests, responses, f"{name}: each response has its request")


def expect(got, wanted, where):
    if got != wanted:
        sys.exit(f"{got!r}, not {wanted!r}: {where}")


main(pathlib.Path(sys.argv[1]))
