"""Reads a crawl's archive with readers of others, and replays every capture in it.

    replay.py JOB

warcio and FastWARC read all records and check their digests; pywb replays each response and each
revisit, once by the crawl's own index and once by one that pywb makes of the archive. What it shows
must be the status and the body that were archived, those of the original for a revisit.
Prints what there was as JSON; with a mistake it tells it and exits with 1.

One difference is expected: a WARC-Payload-Digest is that of the body without its transfer coding
(WARC 1.1, section 6.3.2), and warcio 1.8.1 (its issues 74 and 75) and FastWARC 2.0.1 take it over
the chunks. So each chunked response fails in their checks, and nothing else may.
"""

# First, since it patches the standard library.
from pywb_app import replaying

import base64
import gzip
import hashlib
import json
import os
import pathlib
import re
import sys
import tempfile

from fastwarc.warc import ArchiveIterator as FastIterator
from fastwarc.warc import WarcRecordType
from pywb.indexer.cdxindexer import main as make_index
from warcio.archiveiterator import ArchiveIterator
from werkzeug.test import Client


KINDS = ["responses", "revisits", "unmodified", "chunked", "chunked_revisits", "truncated"]
NOT_MODIFIED = "http://netpreserve.org/warc/1.1/revisit/server-not-modified"


def main(job):
    files = sorted((job / "warc").iterdir())
    captures, counts = read_with_warcio(files)
    counts["fastwarc"] = read_with_fastwarc(files, len(captures))
    plain = counts["responses"] - counts["chunked"]
    expect(counts["fastwarc"], plain, "FastWARC takes all that isn't chunked for right")
    lines = [line for file in (job / "index").iterdir() for line in file.read_bytes().splitlines(True)]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        ours, own = pathlib.Path(folder, "ours.cdxj"), pathlib.Path(folder, "own.cdxj")
        ours.write_bytes(b"".join(sorted(lines)))
        make_index(["--sort", "-j", "--output", str(own), *map(str, files)])
        indexes = {index.stem: (index, f"{job}/warc/") for index in (ours, own)}
        client = Client(replaying(indexes))
        for name in indexes:
            counts[name] = sum(replay(client, name, capture) for capture in captures)
        os.chdir("/")
    print(json.dumps(counts), file=sys.__stdout__)


def read_with_warcio(files):
    """All captures: URL, date, status, body; and how many of which kind there are."""
    captures, originals, revisits = [], {}, []
    counts = dict.fromkeys(KINDS, 0)
    for file in files:
        with open(file, "rb") as stream:
            for record in ArchiveIterator(stream, check_digests=True):
                headers = record.rec_headers
                url, date = headers["WARC-Target-URI"], headers["WARC-Date"]
                body = record.content_stream().read()
                check_digests(record, file)
                if record.rec_type not in ("response", "revisit"):
                    continue
                if record.rec_type == "revisit":
                    original = headers["WARC-Refers-To-Target-URI"], headers["WARC-Refers-To-Date"]
                    counts["revisits"] += 1
                    if headers["WARC-Profile"] == NOT_MODIFIED:
                        counts["unmodified"] += 1
                        expect(headers["Content-Length"], "0", f"the block of {url} of {date}")
                        expect(original[0], url, f"what {url} of {date} refers to")
                        revisits.append((url, date, None, original, headers["WARC-Payload-Digest"]))
                        continue
                status = record.http_headers.get_statuscode()
                is_chunked = record.http_headers.get_header("Transfer-Encoding") == "chunked"
                if record.rec_type == "revisit":
                    counts["chunked_revisits"] += is_chunked
                    revisits.append((url, date, status, original, headers["WARC-Payload-Digest"]))
                    continue
                counts["responses"] += 1
                counts["chunked"] += is_chunked
                counts["truncated"] += headers["WARC-Truncated"] is not None
                digest = headers["WARC-Payload-Digest"]
                expect(digest is not None, True, f"{url} has a digest")
                originals[url, date, digest] = status, body
                captures.append((url, date, status, body, headers["WARC-Truncated"]))
    for url, date, status, original, digest in revisits:
        expect((*original, digest) in originals, True, f"{url} refers to what is there")
        shown, body = originals[(*original, digest)]
        captures.append((url, date, status or shown, body, None))
    return captures, counts


def check_digests(record, file):
    """Nothing fails but what is explained at the head."""
    if record.digest_checker.passed is not False:
        return
    problems = record.digest_checker.problems
    where = f"{file.name}: {record.rec_headers['WARC-Target-URI']}: {problems}"
    expect(record.rec_type, "response", where)
    expect(record.http_headers.get_header("Transfer-Encoding"), "chunked", where)
    expect(all(problem.startswith("payload digest failed") for problem in problems), True, where)


def read_with_fastwarc(files, captures):
    """How many responses it takes for right by the digest of their payload."""
    right = seen = 0
    for file in files:
        with open(file, "rb") as stream:
            for record in FastIterator(stream, parse_http=False):
                where = f"{file.name} at {record.stream_pos}"
                if record.record_type in (WarcRecordType.response, WarcRecordType.revisit):
                    seen += 1
                expect(record.verify_block_digest(), True, f"FastWARC, block: {where}")
                if record.record_type == WarcRecordType.response:
                    record.parse_http()
                    right += record.verify_payload_digest()
    expect(seen, captures, "FastWARC finds every capture")
    return right


def replay(client, index, capture):
    """Whether pywb shows a capture as it was archived; what is cut may end earlier."""
    url, date, status, body, truncated = capture
    reply = client.get(f"/{index}/{re.sub(r'[^0-9]', '', date)}id_/{url}")
    where = f"pywb, {index}: {url} of {date}"
    expect(str(reply.status_code), status, where)
    shown = reply.data
    if status.startswith("3"):
        return 1
    if truncated is None:
        if reply.headers.get("Content-Encoding") == "gzip":
            shown = gzip.decompress(shown)
        expect(shown == body, True, f"the body of {where}")
    return 1


def expect(got, wanted, where):
    if got != wanted:
        print(f"{got!r}, not {wanted!r}: {where}", file=sys.__stdout__, flush=True)
        os._exit(1)


main(pathlib.Path(sys.argv[1]).resolve())
