"""Reads an archive back with warcio and compares it with the files that were served.

usage: readback.py EXPECTED ARCHIVE-FILES INDEX-FILES

EXPECTED has a line for each URL that was fetched: URL, status and file, separated by tabs; the
file is empty where the reply is the server's own. Says what is wrong, a line each; exits with 1
if anything is.

The payload digest of a reply in chunks is that of the standard, without the framing (WARC 1.1, 5.9).
warcio takes it over the chunks: what it says of that digest is left aside, and the digest is computed
here instead.
"""

import base64
import glob
import hashlib
import io
import json
import os
import sys
import zlib

from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import ChunkedDataReader

complaints = []


def complain(*words):
    complaints.append(" ".join(str(word) for word in words))


def main():
    expected_file, archives, indexes = sys.argv[1:]
    expected = dict(read_expected(expected_file))
    files = {os.path.basename(name): name for name in sorted(glob.glob(archives))}
    replies, requests = {}, []
    for name in files.values():
        read_archive(name, expected, replies, requests)
    if replies.keys() != expected.keys():
        complain("in the log only:", sorted(expected.keys() - replies.keys())[:5])
        complain("in the archive only:", sorted(replies.keys() - expected.keys())[:5])
    check_revisits(replies, expected)
    check_requests(replies, requests)
    check_index(sorted(glob.glob(indexes)), files, replies)
    for complaint in complaints[:20]:
        print(complaint)
    revisits = sum(reply["type"] == "revisit" for reply in replies.values())
    print(f"{len(replies)} replies, {revisits} of them revisits, in {len(files)} files")
    sys.exit(1 if complaints or not replies else 0)


def read_expected(name):
    with open(name, encoding="utf-8") as lines:
        for line in lines:
            url, status, file = line.rstrip("\n").split("\t")
            yield url, (status, file)


def read_archive(name, expected, replies, requests):
    with open(name, "rb") as stream:
        for place, record in enumerate(ArchiveIterator(stream, check_digests=True)):
            if (place == 0) != (record.rec_type == "warcinfo"):
                complain(name, "record", place, "is a", record.rec_type)
            if record.rec_type in ("response", "revisit"):
                read_reply(name, record, expected, replies)
            elif record.rec_type == "request":
                requests.append((header(record, "Target-URI"), header(record, "Concurrent-To")))
            record.raw_stream.read()
            problems = record.digest_checker.problems
            if record.rec_type == "response" and is_chunked(record):
                # warcio digests the chunks, against the standard.
                problems = [text for text in problems if not text.startswith("payload digest")]
            if problems:
                complain(header(record, "Target-URI"), problems)


def read_reply(name, record, expected, replies):
    url = header(record, "Target-URI")
    if url in replies:
        complain(url, "is in the archive twice")
    replies[url] = {
        "type": record.rec_type,
        "id": header(record, "Record-ID"),
        "digest": header(record, "Payload-Digest"),
        "refers_to": header(record, "Refers-To-Target-URI"),
        "file": os.path.basename(name),
    }
    status, file = expected.get(url, ("", ""))
    if record.http_headers.get_statuscode() != status:
        complain(url, "is archived as", record.http_headers.get_statuscode(), "not", status)
    if record.rec_type == "revisit":
        return
    if header(record, "Truncated"):
        complain(url, "is truncated")
    payload = payload_of(record)
    digest = "sha1:" + base64.b32encode(hashlib.sha1(payload).digest()).decode()
    if header(record, "Payload-Digest") != digest:
        complain(url, "has a payload of", digest, "not", header(record, "Payload-Digest"))
    replies[url]["digest"] = digest
    content = decoded(payload, record.http_headers.get_header("Content-Encoding"))
    if file and sha(content) != sha_of_file(file):
        complain(url, "is archived with", len(content), "bytes that are not those of", file)


def payload_of(record):
    """What the reply carries, content coding kept."""
    return (ChunkedDataReader(record.raw_stream) if is_chunked(record) else record.raw_stream).read()


def is_chunked(record):
    return record.http_headers.get_header("Transfer-Encoding") == "chunked"


def decoded(payload, coding):
    if coding == "gzip":
        return zlib.decompress(payload, 16 + zlib.MAX_WBITS)
    if coding:
        complain("a coding that no server here has:", coding)
    return payload


def check_revisits(replies, expected):
    """A revisit stands for a payload that was archived in full, and was that URL's, too."""
    for url, reply in replies.items():
        if reply["type"] != "revisit":
            continue
        original = replies.get(reply["refers_to"], {})
        if original.get("type") != "response" or original["digest"] != reply["digest"]:
            complain(url, "refers to", reply["refers_to"], "which is", original)
        elif sha_of_file(expected[url][1]) != sha_of_file(expected[reply["refers_to"]][1]):
            complain(url, "refers to", reply["refers_to"], "which had other bytes")


def check_requests(replies, requests):
    """Each reply has its request."""
    asked = {url: concurrent for url, concurrent in requests}
    if len(asked) != len(requests) or asked.keys() != replies.keys():
        complain(len(requests), "requests for", len(replies), "replies")
    for url, concurrent in requests:
        if url in replies and replies[url]["id"] != concurrent:
            complain("the request of", url, "belongs to another reply")


def check_index(indexes, files, replies):
    """Each line of the index leads to its record, and each reply has one."""
    lines = []
    for name in indexes:
        with open(name, encoding="utf-8") as index:
            own = index.read().splitlines()
        own = [line for line in own if not line.startswith("!")]
        if own != sorted(own, key=lambda line: line.encode()):
            complain(name, "is not sorted")
        lines += own
    indexed = {}
    for line in lines:
        entry = json.loads(line.split(" ", 2)[2])
        indexed[entry["url"]] = entry
        record = record_at(files[entry["filename"]], int(entry["offset"]), int(entry["length"]))
        found = (record["url"], record["status"], record["file"])
        if found != (entry["url"], entry["status"], entry["filename"]):
            complain("the line of", entry["url"], "leads to", found)
        if "sha1:" + entry["digest"] != replies.get(entry["url"], {}).get("digest"):
            complain("the line of", entry["url"], "has the digest", entry["digest"])
    if len(indexed) != len(lines) or indexed.keys() != replies.keys():
        complain(len(lines), "lines of index for", len(replies), "replies")


def record_at(name, offset, length):
    with open(name, "rb") as archive:
        archive.seek(offset)
        member = io.BytesIO(archive.read(length))
    records = ArchiveIterator(member)
    record = next(records)
    found = {
        "url": header(record, "Target-URI"),
        "status": record.http_headers.get_statuscode(),
        "file": os.path.basename(name),
    }
    record.raw_stream.read()
    if next(records, None) is not None:
        complain(name, "at", offset, "has more than a record")
    return found


def header(record, name):
    return record.rec_headers.get_header("WARC-" + name)


def sha(data):
    return hashlib.sha256(data).digest()


def sha_of_file(name, known={"": None}):
    if name not in known:
        with open(name, "rb") as stream:
            known[name] = sha(stream.read())
    return known[name]


if __name__ == "__main__":
    main()
