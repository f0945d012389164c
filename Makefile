# The commands of the README. Each does its own set-up and says at once what is missing.
#
#   make article [ARTICLE=slug] [PROFILE=quick|full]   measure, check and write out/; with
#                                                      REMEASURE_ENGINE=embedded without Docker
#   make check   [ARTICLE=slug]                        judge the quotes against the accepted records
#   make test                                          every test
#   make test-containers                               those of the docker engine, with a daemon
#   make test-remote                                   those of a daemon on another machine
#   make bench                                         times over sizes of an article
#   make fuzz    [SECONDS=60]                          mutations of what is read, for so long
#   make check-code                                    format, lints, documentation, licences
#   make clean                                         what can be made again

ARTICLE ?=
PROFILE ?= quick
SECONDS  = 60
CARGO   ?= cargo

REMEASURE = target/release/remeasure

.PHONY: article check test test-containers test-remote bench fuzz check-code clean requirements
.DELETE_ON_ERROR:

article: requirements
	$(CARGO) build --release --locked
	$(REMEASURE) build $(ARTICLE) --profile $(PROFILE)

check: requirements
	$(CARGO) build --release --locked
	$(REMEASURE) check --recorded $(ARTICLE)

test: requirements
	$(CARGO) test --locked

# Which of them: others for a short run.
CONTAINER_TESTS = engines::docker_ containers:: images::

# One by one: the leak tests count containers. On the images that articles/pins.yaml names, or REMEASURE_TEST_PINS, with the daemon that answers.
test-containers: requirements
	$(CARGO) test --locked --features container-tests --test suite -- --test-threads 1 $(CONTAINER_TESTS)

# The same, and more, on the daemon of another machine that DOCKER_HOST names and `.ci/remote` has started.
test-remote: requirements
	$(CARGO) test --locked --features container-tests --test suite -- --test-threads 1 engines::docker_ remote::

bench: requirements
	$(CARGO) bench --locked --bench speed

fuzz: requirements
	FUZZ_SECONDS=$(SECONDS) $(CARGO) test --locked --test suite fuzz:: -- --nocapture

check-code: requirements
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps --document-private-items
	@if command -v cargo-deny >/dev/null 2>&1; then $(CARGO) deny --locked check licenses bans sources; \
	else echo "note: cargo-deny is not installed; licences are not checked (cargo install cargo-deny)"; fi

clean:
	$(CARGO) clean
	rm -rf out

# What cannot be fetched along the way. Everything that is missing is named, not only the first.
# The libraries are those of the pinned Postgres on Linux; a folder of one's own needs its own.
LIBRARIES = libxml2.so.2:libxml2 libssl.so.3:libssl3 libgssapi_krb5.so.2:libgssapi-krb5-2 \
	libzstd.so.1:libzstd1 liblz4.so.1:liblz4-1

requirements:
	@missing=""; \
	need() { missing="$$missing\n  $$1"; }; \
	command -v $(CARGO) >/dev/null 2>&1 || need "cargo: the Rust toolchain, 1.94 or later (rustup)"; \
	command -v cc >/dev/null 2>&1 || need "cc: a C compiler (Debian, Fedora: gcc; macOS: xcode-select --install)"; \
	if [ -z "$$REMEASURE_POSTGRES" ]; then \
	  if ! command -v python3 >/dev/null 2>&1; then need "python3: fetches the pinned Postgres"; \
	  elif ! python3 -m pip --version >/dev/null 2>&1; then need "pip: fetches the pinned Postgres (Debian, Fedora: python3-pip)"; fi; \
	  libraries=$$(PATH="$$PATH:/sbin:/usr/sbin" ldconfig -p 2>/dev/null); \
	  if [ -n "$$libraries" ]; then for library in $(LIBRARIES); do \
	    case "$$libraries" in *"$${library%%:*}"*) ;; *) need "$${library%%:*}: of the pinned Postgres (Debian: $${library##*:})";; esac; \
	  done; fi; \
	fi; \
	if [ -n "$$missing" ]; then printf "missing on this machine:$$missing\n" >&2; exit 4; fi
