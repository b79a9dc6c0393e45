"""Reads what an archive says of the use of pages.

    consent.py JOB

Each `metadata` record names, in WARC-Concurrent-To, a response or revisit that follows it, of the same
URL and date; and the index line of that record has what its lines `allowed` and `reserved` say.
Prints a JSON object: for each URL, the lines of the metadata record of its last capture. With a mistake it
says so and exits with 1.
"""

import json
import pathlib
import sys

from warcio.archiveiterator import ArchiveIterator


def main(job):
    indexed = {}
    for file in sorted((job / "index").iterdir()):
        for line in file.read_text().splitlines():
            fields = json.loads(line.split(" ", 2)[2])
            indexed[fields["filename"], int(fields["offset"])] = fields
    said = {}
    for file in sorted((job / "warc").iterdir()):
        with open(file, "rb") as stream:
            records = ArchiveIterator(stream)
            waiting = None
            for record in records:
                head, kind = record.rec_headers, record.rec_type
                url, date = head["WARC-Target-URI"], head["WARC-Date"]
                if kind == "metadata":
                    expect(waiting, None, f"two metadata records in a row: {url}")
                    expect(head["Content-Type"], "application/warc-fields", url)
                    lines = record.content_stream().read().decode().split("\r\n")
                    expect(lines.pop(), "", f"{url}: the last line is ended")
                    waiting = head["WARC-Concurrent-To"], url, date, lines
                if kind not in ("response", "revisit"):
                    continue
                lines = []
                if waiting:
                    *named, lines = waiting
                    expect(named, [head["WARC-Record-ID"], url, date], "what it speaks of")
                waiting = None
                fields = indexed.pop((file.name, records.get_record_offset()))
                for name in ("allowed", "reserved"):
                    own = [line.removeprefix(f"{name}: ") for line in lines if line.startswith(f"{name}: ")]
                    expect(fields.get(name), own[0] if own else None, f"{name} of {url}")
                said[url] = lines
            expect(waiting, None, f"a metadata record about nothing in {file}")
    expect(indexed, {}, "index lines without a record")
    print(json.dumps(said))


def expect(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: {found!r}, not {expected!r}")


main(pathlib.Path(sys.argv[1]))
