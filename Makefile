# The verbs of this repository. "make" alone lists them. Only Go is needed, except where a line says more.

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME    ?= 10s
SCENARIO    ?= all
BENCHFLAGS  ?=
ROUNDS      ?= 40
SEEDS       ?= 100000

# A test's failure is not hidden by what its output is piped through.
SHELL       := bash
.SHELLFLAGS := -o pipefail -c

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the verbs
	@grep -E '^[a-z][a-z-]*:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

.PHONY: build
build: ## build bin/ringmq, one static file
	CGO_ENABLED=0 $(GO) build -o bin/ringmq ./cmd/ringmq

.PHONY: run
run: ## run the broker with its defaults, data in ./data
	CGO_ENABLED=0 $(GO) run ./cmd/ringmq serve

.PHONY: test
test: ## run all tests, the black-box suites on both I/O backends included
	$(GO) test -count=1 ./...

.PHONY: race
race: ## run all tests under the race detector, the broker that the suites start included
	RINGMQ_TEST_RACE=1 $(GO) test -race -count=1 ./...

.PHONY: fuzz
fuzz: ## run each fuzz target for FUZZTIME (10s)
	./.ci/fuzz $(FUZZTIME)

.PHONY: uapi
uapi: ## hold the kernel ABI types against giouring, the independent reference
	$(GO) test -tags giouring -ldflags=-checklinkname=0 ./ring/uapi

.PHONY: suite
suite: ## run the integration tests of the Go client amqp091-go, each backend in a network namespace (needs root and ip from iproute2)
	@$(GO) run ./test/suite -io uring & uring=$$!; $(GO) run ./test/suite -io epoll; epoll=$$?; \
	wait $$uring && exit $$epoll

.PHONY: interop
interop: ## run Python, Node, Java and Rust clients, Celery and Spring (needs python3, npm, mvn, cargo; what is missing is reported as not run)
	$(GO) test -count=1 -tags interop -timeout 15m -v ./test/interop

.PHONY: soak
soak: ## run the long leak and disturbance tests
	RINGMQ_TEST_SOAK=1 $(GO) test -count=1 -timeout 60m ./test/...

.PHONY: crash
crash: ## kill and restart the broker under load ROUNDS times (40), fail its disk, fill it, damage its log
	$(GO) test -count=1 -tags faults -run 'Fault' ./wal
	RINGMQ_TEST_ROUNDS=$(ROUNDS) $(GO) test -count=1 -timeout 48h -v ./test/crash | grep -v '^=== '

.PHONY: powercut
powercut: ## cut the power under the log SEEDS times (100000), and flip and truncate as often
	RINGMQ_TEST_SEEDS=$(SEEDS) $(GO) test -count=1 -timeout 48h -v \
		-run 'PowerCut|BitFlips|Truncation|RecycledGarbage|PlantedFaults' ./wal

.PHONY: bench
bench: build ## measure a broker started for it: SCENARIO=throughput BENCHFLAGS="--size 16 --vs rabbitmq"
	bin/ringmq bench $(SCENARIO) $(BENCHFLAGS)

.PHONY: lint
lint: ## gofmt, go vet, staticcheck (fetched through the Go module proxy)
	@test -z "$$(gofmt -l .)" || { gofmt -l .; echo "run: gofmt -w on these files"; exit 1; }
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...

.PHONY: tidy
tidy: ## check the house rules: imports, lengths, doc.go, hot files
	$(GO) test -count=1 ./test/tidy

.PHONY: generate
generate: ## regenerate generated code and the settings table of docs/configuration.md
	$(GO) generate ./...
	$(GO) test -count=1 -run TestConfigurationPage ./cmd/ringmq -rewrite

.PHONY: ci
ci: ## everything that decides whether a change may land
	./.ci/run

.PHONY: clean
clean: ## remove what building and testing left in the tree
	rm -rf bin bench-results test/interop/scratch
