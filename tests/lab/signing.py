"""Verifies the signed requests of an archive, by http-message-signatures.

    signing.py JOB KEYS OTHER_KEYS

KEYS is the directory document of the key that signed, OTHER_KEYS that of another one. Each request record is
verified at its own date; then with another path, another query, another method, another host, another agent, by the other
key, and by a clock that is too early or too late: all of these must be refused. Prints a JSON object: the
numbers of requests, of those without a signature, and of those that are valid. With a mistake it says so and
exits with 1.
"""

import base64
import datetime
import json
import pathlib
import sys
import types

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from http_message_signatures import HTTPMessageVerifier, HTTPSignatureKeyResolver, algorithms, signatures
from http_message_signatures.exceptions import HTTPMessageSignaturesException
from warcio.archiveiterator import ArchiveIterator

COVERED = ("@method", "@authority", "@path", "@query", '"signature-agent";key="sig1"')
FIELDS = ("signature-agent", "signature-input", "signature")


class Keys(HTTPSignatureKeyResolver):
    """The keys of a directory; if it `lies`, its first key is every key."""

    def __init__(self, file, lies=False):
        keys = json.loads(pathlib.Path(file).read_text())["keys"]
        raw = {key["kid"]: base64.urlsafe_b64decode(key["x"] + "==") for key in keys}
        self.keys = {name: Ed25519PublicKey.from_public_bytes(key) for name, key in raw.items()}
        self.lies = lies

    def resolve_public_key(self, key_id):
        return next(iter(self.keys.values())) if self.lies else self.keys.get(key_id)


class Clock(datetime.datetime):
    """A clock that stands still."""

    at = None

    @classmethod
    def now(cls, tz=None):
        return cls.at


signatures.datetime = types.SimpleNamespace(
    datetime=Clock, timedelta=datetime.timedelta, timezone=datetime.timezone
)


def holds(keys, at, method, url, headers):
    Clock.at = at
    verifier = HTTPMessageVerifier(signature_algorithm=algorithms.ED25519, key_resolver=keys)
    message = types.SimpleNamespace(method=method, url=url, headers=headers)
    try:
        results = verifier.verify(message, expect_tag="web-bot-auth", require_components=COVERED)
    except HTTPMessageSignaturesException:
        return False
    life = results[0].parameters["expires"] - results[0].parameters["created"]
    return len(results) == 1 and 0 < int(life.total_seconds() if hasattr(life, "total_seconds") else life) <= 60


def main(job, own_file, other_file):
    own, other, liar = Keys(own_file), Keys(other_file), Keys(other_file, lies=True)
    count = {"requests": 0, "unsigned": 0, "valid": 0}
    for file in sorted((job / "warc").iterdir()):
        with open(file, "rb") as stream:
            for record in ArchiveIterator(stream):
                if record.rec_type != "request":
                    continue
                count["requests"] += 1
                url = record.rec_headers["WARC-Target-URI"]
                headers = dict(record.http_headers.headers)
                lower = [name.lower() for name in headers]
                if "signature" not in lower:
                    count["unsigned"] += 1
                    continue
                assert [name for name in lower if name.startswith("signature")] == list(FIELDS), lower
                at = datetime.datetime.fromisoformat(record.rec_headers["WARC-Date"].replace("Z", "+00:00"))
                seconds = datetime.timedelta(seconds=1)
                if not holds(own, at, "GET", url, headers):
                    sys.exit(f"{url}: refused: {headers}")
                agent = next(name for name in headers if name.lower() == "signature-agent")
                wrong = {
                    "path": holds(own, at, "GET", url + "x" if "?" not in url else url.replace("?", "x?", 1), headers),
                    "query": holds(own, at, "GET", url + ("&y" if "?" in url else "?y"), headers),
                    "method": holds(own, at, "POST", url, headers),
                    "host": holds(own, at, "GET", url.replace("://", "://x.", 1), headers),
                    "agent": holds(own, at, "GET", url, {**headers, agent: 'sig1="https://another.example"'}),
                    "unknown key": holds(other, at, "GET", url, headers),
                    "another key": holds(liar, at, "GET", url, headers),
                    "early clock": holds(own, at - 10 * seconds, "GET", url, headers),
                    "late clock": holds(own, at + 70 * seconds, "GET", url, headers),
                }
                if any(wrong.values()):
                    sys.exit(f"{url}: not refused: {wrong}")
                count["valid"] += 1
    print(json.dumps(count))


main(pathlib.Path(sys.argv[1]), *sys.argv[2:])
