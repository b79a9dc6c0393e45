# Commands for development. `make` lists them.

CARGO ?= cargo
crawl: CONF ?= conf/quickstart.toml
compare: CONF ?= conf/compare-2003.toml
profile: CONF ?= conf/profile-lab.toml
PREFIX ?= /usr/local
STED = $(or $(CARGO_TARGET_DIR),target)/release/sted
# Reports name the commit. Targets that build the same profile must agree on it: another value is another build.
build stations frontier-study: export STED_COMMIT = $(shell git describe --always --dirty 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help deps build crawl compare profile figure-5b study cache-study frontier-study test sim crash cluster cluster-faults cluster-links cluster-upgrade clusters orders operate kill props fresh fuzz check check-crawler msrv deny conformance
.PHONY: bench bench-peers spam again again-crash again-sim again-kills sitemaps stations count map golden doc install dist clean ci

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

deps: ## install what the tests need
	@tests/deps

build: ## build the program: target/release/sted
	@tests/deps build
	$(CARGO) build --release --locked

crawl: build ## run the crawl that CONF=conf/quickstart.toml describes
	$(STED) crawl $(CONF)

compare: build ## compare policies as CONF=conf/compare-2003.toml describes; write a report to its directory
	$(STED) compare $(CONF)

profile: build ## find the number of connections at which a core saturates, as CONF=conf/profile-lab.toml describes
	$(STED) profile $(CONF)

figure-5b: build ## measure the core's time in user mode, in the kernel and idle, by connections; write a report to bench/runs
	bench/figure-5b

test: deps ## run every test
	$(CARGO) test --locked

sim: ## check simulated crawls with N=1000 seeds, or with SEED=
	@tests/deps build
	STED_SIM_N="$(N)" STED_SIM_SEED="$(SEED)" $(CARGO) test --locked --test tests sweep::sweep -- --ignored --nocapture

again-sim: ## check simulated crawls that come back, with N=1000 seeds, or with SEED=
	@tests/deps build
	STED_SIM_N="$(N)" STED_SIM_SEED="$(SEED)" $(CARGO) test --locked --test tests sweep::again::sweep -- --ignored --nocapture

crash: ## check simulated crawls that crash and resume, with N=1000 seeds, or with SEED=
	@tests/deps build
	STED_CRASH_N="$(N)" STED_CRASH_SEED="$(SEED)" $(if $(FOLDER),STED_CRASH_FOLDER="$(abspath $(FOLDER))") $(CARGO) test --locked --test tests crash::sweep_of_crashes -- --ignored --nocapture

cluster: deps ## crawl 600 hosts by three real processes that share a real nats-server: some minutes
	$(CARGO) test --locked --test tests lab::nodes::six_hundred_hosts -- --ignored --nocapture

cluster-faults: deps ## kill, stop and cut off nodes and their nats-server, N=50 times
	STED_FAULTS_N="$(N)" $(CARGO) test --locked --test tests lab::nodes::more_faults -- --ignored --nocapture

cluster-links: deps ## measure two nodes that crawl pages with a thousand links each, for S=600 seconds
	STED_LINKS_S="$(S)" $(CARGO) test --locked --test tests lab::nodes::links::a_thousand_links_a_page -- --ignored --nocapture

cluster-upgrade: deps ## replace the program OLD=path under a running crawl by three nodes, one after the other
	STED_OLD="$(OLD)" $(CARGO) test --locked --test tests lab::nodes::a_rolling_upgrade -- --ignored --nocapture

again: deps ## crawl a lab whose pages change, for S=3600 seconds, beside a simulated one
	STED_AGAIN_S="$(S)" $(CARGO) test --locked --test tests lab::again::an_hour_of_changes -- --ignored --nocapture

again-kills: deps ## kill a crawl that comes back N=50 times: no page may be forgotten
	STED_AGAIN_N="$(N)" $(CARGO) test --locked --test tests lab::again::kills_lose_no_known_page -- --ignored --nocapture

sitemaps: deps ## read twenty sitemaps of 50,000 URLs each, served by nginx: the loop's lag
	$(CARGO) test --locked --test tests real::sitemaps::a_million_urls -- --ignored --nocapture

clusters: ## check simulated crawls by several nodes, with N=1000 seeds, or with SEED=
	@tests/deps build
	STED_CLUSTER_N="$(N)" STED_CLUSTER_SEED="$(SEED)" $(if $(FOLDER),STED_CLUSTER_FOLDER="$(abspath $(FOLDER))") $(CARGO) test --locked --test tests cluster::sweep_of_clusters -- --ignored --nocapture

again-crash: ## check simulated crawls that come back, crash and resume, with N=1000 seeds, or with SEED=
	@tests/deps build
	STED_CRASH_N="$(N)" STED_CRASH_SEED="$(SEED)" $(if $(FOLDER),STED_CRASH_FOLDER="$(abspath $(FOLDER))") $(CARGO) test --locked --test tests crash::sweep_of_again -- --ignored --nocapture

orders: ## check simulated crawls that crash and get commands, with N=1000 seeds, or with SEED=
	@tests/deps build
	STED_CRASH_N="$(N)" STED_CRASH_SEED="$(SEED)" $(if $(FOLDER),STED_CRASH_FOLDER="$(abspath $(FOLDER))") $(CARGO) test --locked --test tests crash::sweep_of_orders -- --ignored --nocapture

operate: deps ## operate a crawl of 3,000 hosts at the default politeness: a quarter of an hour
	$(CARGO) test --locked --test tests lab::operate::three -- --ignored --nocapture

kill: deps ## kill and resume crawls in real processes, N=100 times
	STED_KILL_N="$(N)" $(CARGO) test --locked --test tests lab::kill::killed_more_often -- --ignored --nocapture

props: ## check the laws of every parser on mutated inputs, with N=100 seeds, or with SEED=
	@tests/deps build
	STED_PROPS_N="$(N)" STED_PROPS_SEED="$(SEED)" $(CARGO) test --locked --test tests props::more -- --ignored --nocapture

fresh: ## check simulations, crashes, clusters and properties with new random seeds, S=20 seconds each
	@tests/deps build
	STED_FRESH_S="$(S)" $(CARGO) test --locked --test tests -- --ignored --nocapture --test-threads 1 --exact sweep::fresh sweep::again::fresh crash::fresh cluster::fresh props::fresh

fuzz: ## fuzz every parser with libFuzzer, S=30 seconds each, or T="url robots" only
	@tests/fuzz/run $(or $(S),30) $(T)

check: ## check format, lints and documentation
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items

check-crawler: ## check that the crawler and its tests build without the study, with and without control socket and cluster
	$(CARGO) check --locked --no-default-features --all-targets
	$(CARGO) check --locked --no-default-features --features control --all-targets
	$(CARGO) check --locked --no-default-features --features cluster --all-targets

msrv: ## check that the code builds with the oldest Rust that Cargo.toml allows (FETCH=1 installs it)
	@tests/msrv $(FETCH:%=fetch)

deny: ## check licences and sources of dependencies, and advisories if their database is installed (FETCH=1 downloads it)
	@[ -z "$(FETCH)" ] || command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	@command -v cargo-deny >/dev/null || { echo "deny: cargo-deny is missing: cargo install --locked cargo-deny, or make deny FETCH=1" >&2; exit 1; }
	cargo-deny --locked check bans licenses sources
	@if [ -n "$(FETCH)" ]; then cargo-deny --locked check advisories; \
	elif [ -n "$$(ls -d "$${CARGO_HOME:-$$HOME/.cargo}"/advisory-dbs/advisory-db-*/ 2>/dev/null)" ]; then cargo-deny --locked --offline check advisories; \
	else echo "deny: the database of advisories is not installed: make deny FETCH=1"; fi

conformance: ## run the conformance cases of DIR=folder
	@test -n "$(DIR)" || { echo "usage: make conformance DIR=folder-of-cases" >&2; exit 2; }
	STED_CONFORMANCE="$(abspath $(DIR))" $(CARGO) test --locked --test tests conformance:: -- --ignored --nocapture

study: build ## run the experiments on scheduling; write reports to bench/runs (GRAPH="folders of real links", or REPEATS=2 PAGES=3000 OUT=folder for a look)
	bench/study $(GRAPH)

cache-study: build ## measure hit rates of caches of known URLs; write a report to bench/runs (GRAPH=folder of cnr-2000)
	bench/cache-study $(GRAPH)

frontier-study: build ## measure the cost of a waiting URL, from 1 to 100 million; write a report to bench/runs (URLS="1000000 100000000" BURST=server)
	$(CARGO) bench --locked --bench frontier -- study bench/runs/$$(date -u +%F)-frontier-study$(BURST:%=-burst-%) $(or $(BURST),1) $(URLS)

spam: ## simulate crawls of webs with link farms: the farms' share of the requests, in some minutes, or PART=10 for a tenth
	@tests/deps build
	$(CARGO) bench --locked --bench spam -- $(PART)

bench: build ## measure the CPU cost of a page on two webs, beside wrk and beside what its bytes cost at least, in a few minutes
	bench/run

bench-peers: ## compare with other crawlers on all webs; write a report to bench/runs (REPEATS=3 WEBS="pages-64 large")
	bench/peers/run $(REPEATS) $(WEBS)

stations: deps ## count each station's instructions and compare them with bench/limits.toml
	bench/stations

map: ## list every file of src with the first line of its documentation
	@find src -name '*.rs' | LC_ALL=C sort | while read -r file; do \
	    printf '%-46s %s\n' "$$file" "$$(sed -n '1s|^//! ||p' "$$file")"; done

count: ## count lines of code by folder of src, in this tree or in DIR=
	@mkdir -p $(or $(CARGO_TARGET_DIR),target)
	@rustc --edition 2024 -o $(or $(CARGO_TARGET_DIR),target)/count tests/layers/count.rs
	@$(or $(CARGO_TARGET_DIR),target)/count $(or $(DIR),.)

golden: ## rewrite tests/golden and conf/reference.toml from the program's output; review the changes
	@tests/deps build
	STED_GOLDEN=1 $(CARGO) test --locked --test tests
	git --no-pager diff --stat -- tests/golden conf/reference.toml

doc: ## build the documentation: target/doc/sted/index.html
	$(CARGO) doc --locked --no-deps --document-private-items

install: build ## install the program under PREFIX=/usr/local (and DESTDIR=)
	install -D -m 755 $(STED) "$(DESTDIR)$(PREFIX)/bin/sted"
	install -D -m 644 -t "$(DESTDIR)$(PREFIX)/share/doc/sted" README.md conf/*.toml

dist: build ## make packages in target/dist: tarball, Debian package, debug information
	$(CARGO) build --locked --example pages
	dist/package $(STED)

clean: ## remove build results and downloads, but not the crawls in jobs/
	$(CARGO) clean
	rm -rf .venv

ci: ## run everything that must pass before a change is done
	@.ci/run
