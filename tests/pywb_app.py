"""pywb within the process of a test: what the scripts that replay archives share.

Importing it patches the standard library for gevent, so it is imported before anything else. It
also moves stdout to stderr, because pywb reports there what it doesn't find; results are printed to
`sys.__stdout__`. Scripts find it by PYTHONPATH, which `util::python` of the tests sets.
"""

import gevent.monkey

gevent.monkey.patch_all()

import functools
import logging
import sys

from pywb.apps import frontendapp

logging.disable(logging.CRITICAL)
sys.stdout = sys.stderr

# pywb serves its archive to itself under a name that a plain chroot, without /etc/hosts, lacks.
frontendapp.GeventServer = functools.partial(frontendapp.GeventServer, hostname="127.0.0.1")


class FrontEnd(frontendapp.FrontEndApp):
    REPLAY_API = frontendapp.FrontEndApp.REPLAY_API.replace("localhost", "127.0.0.1")
    CDX_API = frontendapp.FrontEndApp.CDX_API.replace("localhost", "127.0.0.1")


def replaying(collections):
    """The application that replays these collections: for each name its index and its archive."""
    paths = {
        name: {"index_paths": str(index), "archive_paths": str(archive)}
        for name, (index, archive) in collections.items()
    }
    return FrontEnd(custom_config={"debug": False, "collections": paths})
