// Drives colly as a peer: one collector, 64 requests under way, robots and delays off.
//
//	colly SEEDS HOSTS [CA]
//
// SEEDS and HOSTS are files, one URL or host a line: it stays on these hosts. CA is a file of
// authorities to trust.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"sync/atomic"
	"time"

	"github.com/gocolly/colly/v2"
)

const requests = 64

func lines(path string) []string {
	file, err := os.Open(path)
	if err != nil {
		panic(err)
	}
	defer file.Close()
	var found []string
	for scanner := bufio.NewScanner(file); scanner.Scan(); {
		found = append(found, scanner.Text())
	}
	return found
}

func main() {
	seeds, hosts := lines(os.Args[1]), lines(os.Args[2])
	transport := &http.Transport{
		MaxIdleConnsPerHost: requests,
		IdleConnTimeout:     30 * time.Second,
	}
	if len(os.Args) > 3 {
		pem, err := os.ReadFile(os.Args[3])
		if err != nil {
			panic(err)
		}
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: roots}
	}
	c := colly.NewCollector(
		colly.Async(true),
		colly.IgnoreRobotsTxt(),
		colly.AllowedDomains(hosts...),
		colly.UserAgent("peer"),
		colly.MaxBodySize(0),
	)
	c.WithTransport(transport)
	c.DisableCookies()
	if err := c.Limit(&colly.LimitRule{DomainGlob: "*", Parallelism: requests}); err != nil {
		panic(err)
	}
	var pages atomic.Int64
	c.OnResponse(func(*colly.Response) { pages.Add(1) })
	c.OnHTML("a[href]", func(e *colly.HTMLElement) {
		_ = e.Request.Visit(e.Attr("href"))
	})
	for _, seed := range seeds {
		_ = c.Visit(seed)
	}
	c.Wait()
	fmt.Println(pages.Load())
}
