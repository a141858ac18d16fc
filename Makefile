# weir: `make help` lists the targets.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Tools that no module needs are pinned here.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

GO ?= go
FUZZTIME ?= 30s
FUZZ ?= .
BENCH ?=
# What goes into the image: the commit for its labels, and --root DIR in place of
# the layout for files alone, as the Dockerfile wants them.
COMMIT ?= $(shell git describe --always --dirty --abbrev=40 --exclude='*' 2>/dev/null || echo unknown)
IMAGE ?= --out bin/image/oci
# What runs on systems other than Linux: all but the demo and what builds images.
PORTABLE := ./abi/... ./pdk/... ./plugins/... ./host/... ./cmd/weir/...
# Packages whose tests run again under the race detector in `make test`.
RACED ?= ./host/...

PLUGINS := $(sort $(notdir $(patsubst %/,%,$(dir $(wildcard plugins/*/plugin.go)))))
WASM := GOOS=wasip1 GOARCH=wasm $(GO) build -buildmode=c-shared -trimpath -ldflags='-s -w'

.PHONY: help build plugins demo compare test race image conform bench soak baseline check fuzz kit clean $(PLUGINS:%=plugin-%)

help: ## list the targets
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/  make \1\t\2/' | expand -t 18

build: plugins ## build plugins and programs, and pin the plugins in plugins/dist/agent.lock
	@mkdir -p bin
	$(GO) build -trimpath -ldflags='-s -w' -o bin/ ./cmd/...
	bin/weir lock

plugins: $(PLUGINS:%=plugin-%) ## build the plugins into plugins/dist

# The go command knows what has changed; make does not try to.
$(PLUGINS:%=plugin-%): plugin-%:
	@mkdir -p plugins/dist
	$(WASM) -o plugins/dist/$*.wasm ./plugins/$*

demo: build ## run five conversations against the agent, without a network or keys
	bin/weir-demo

compare: build ## compare the agent with itself without guardrails; the report is bin/compare/report.html
	bin/weir-demo --compare bin/compare -- --gate

# -count=1, because modules are built by tests and the go command does not know
# that their sources are a test's input. The time-out is a package's, three of
# which take minutes under the race detector, on a busy machine many.
TEST := $(GO) test -count=1 -timeout 25m
test: plugins ## run all tests, those of the host also under the race detector
	$(TEST) ./...
	$(TEST) -race $(RACED)

race: plugins ## run all tests under the race detector
	$(TEST) -race ./...

bench: ## measure what is promised; BENCH=--quick, BENCH='--rows match', STRICT=1 for times, too
	@mkdir -p bin
	$(GO) build -trimpath -ldflags='-s -w' -o bin/ ./cmd/weir-bench
	bin/weir-bench $(BENCH)

image: build ## write the container image to bin/image/oci, without a container engine
	@mkdir -p bin/image
	CGO_ENABLED=0 GOOS=linux $(GO) build -trimpath -ldflags='-s -w' -o bin/image/weir ./cmd/weir
	bin/weir-image --weir bin/image/weir --commit "$(COMMIT)" $(IMAGE)

conform: build ## hold our own agent and our own folder against the three specifications
	bin/weir-demo --exec bin/weir conform --url {url} --dir . --ask 'Show me my open tickets.'
	bin/weir-demo --exec bin/weir conform --url {url} --spec agentv --ask 'What time is it? Use get_time.'

soak: ## the long forms: fresh state and flat memory over 100,000 calls and 2,000 reloads
	WEIR_SOAK=1 $(GO) test -count=1 -timeout 2h -v -run 'Fresh|Flat' ./host/plugin

baseline: ## show the faults that the sandbox mends, on plain wazero and the plain Extism SDK
	$(GO) test -count=1 -timeout 30m -v -tags baseline -run Baseline ./host/plugin

check: ## format, vet for every system, staticcheck, layout, image version, nothing built is committed
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); test -z "$$out" || { echo "not formatted: $$out"; exit 1; }
	$(GO) mod verify
	$(GO) vet ./...
	GOOS=darwin $(GO) vet $(PORTABLE)
	GOOS=windows $(GO) vet $(PORTABLE)
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./abi/... ./pdk/... ./plugins/...
	$(GO) run $(STATICCHECK) ./...
	$(GO) test -count=1 -run '^Test(Layout|PackageComments|NothingPersonal)' ./host
	scripts/image-version.sh
	@out=$$(git ls-files '*.wasm' 'bin/*' 'plugins/dist/*'); test -z "$$out" || { echo "built files are committed: $$out"; exit 1; }

fuzz: ## run each fuzz target for FUZZTIME (30s); FUZZ=Name picks some
	@grep -rE --include='*_test.go' '^func Fuzz\w*' . | sed -E 's/^(.*)\/[^/]*:func (Fuzz\w*).*/\1 \2/' | grep -E "$(FUZZ)" | sort -u | \
	while read -r package target; do \
		echo "== $$package $$target"; \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 20x "$$package" </dev/null; \
	done

kit: ## write what is made from other files: the guest kit, and agent.toml in the ConfigMaps
	$(GO) test -count=1 ./cmd/weir -run '^TestKitIsCurrent$$' -update
	$(GO) test -count=1 ./k8s -run '^TestConfigMapsAreCurrent$$' -update

clean: ## remove what was built
	rm -rf bin plugins/dist bench
