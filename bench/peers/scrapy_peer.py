"""Drives Scrapy as a peer: every link of every page on `.test`, by the shortest spider there is.

    scrapy_peer.py SEEDS

SEEDS is a file of URLs, one a line. Middleware that a plain crawl has no use for is off.
"""

import sys
import urllib.parse

import scrapy
from scrapy.crawler import CrawlerProcess

OFF = [
    "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware",
    "scrapy.downloadermiddlewares.retry.RetryMiddleware",
    "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware",
    "scrapy.downloadermiddlewares.stats.DownloaderStats",
]
OFF_SPIDER = [
    "scrapy.spidermiddlewares.referer.RefererMiddleware",
    "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware",
    "scrapy.spidermiddlewares.depth.DepthMiddleware",
]

SETTINGS = {
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 64,
    "DOWNLOAD_DELAY": 0,
    "ROBOTSTXT_OBEY": False,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "ERROR",
    "DOWNLOAD_MAXSIZE": 0,
    "DOWNLOADER_MIDDLEWARES": dict.fromkeys(OFF),
    "SPIDER_MIDDLEWARES": dict.fromkeys(OFF_SPIDER),
    "EXTENSIONS": {"scrapy.extensions.memusage.MemoryUsage": None},
}


class Peer(scrapy.Spider):
    """Follows all."""

    name = "peer"
    start_urls = open(sys.argv[1]).read().split()

    seen = set(start_urls)

    def parse(self, response):
        """Every link that is new as a request: to ask the scheduler would take longer."""
        if not isinstance(response, scrapy.http.TextResponse):
            return
        for link in response.xpath("//a/@href").getall():
            url = response.urljoin(link).split("#", 1)[0]
            if url in self.seen:
                continue
            self.seen.add(url)
            # Scrapy's own filter of hosts lets requests pass that are not to be filtered.
            if (urllib.parse.urlsplit(url).hostname or "").endswith(".test"):
                yield scrapy.Request(url, dont_filter=True)


process = CrawlerProcess(SETTINGS)
process.crawl(Peer)
process.start()
