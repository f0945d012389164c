# The commands of the README. Each does its own set-up and says at once what is missing.
#
#   make article [ARTICLE=slug] [PROFILE=quick|full]   measure, check and write out/
#   make check   [ARTICLE=slug]                        judge the quotes against the accepted records
#   make test                                          every test
#   make check-code                                    format, lints, documentation, licences
#   make clean                                         what can be made again

ARTICLE ?=
PROFILE ?= quick
CARGO   ?= cargo

REMEASURE = target/release/remeasure

.PHONY: article check test check-code bench clean requirements
.DELETE_ON_ERROR:

article: requirements
	$(CARGO) build --release --locked
	$(REMEASURE) build $(ARTICLE) --profile $(PROFILE)

check: requirements
	$(CARGO) build --release --locked
	$(REMEASURE) check --recorded $(ARTICLE)

test: requirements
	$(CARGO) test --locked

check-code: requirements
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --locked --no-deps
	@if command -v cargo-deny >/dev/null 2>&1; then $(CARGO) deny --locked check licenses bans sources; \
	else echo "note: cargo-deny is not installed; licences are not checked (cargo install cargo-deny)"; fi

clean:
	$(CARGO) clean
	rm -rf out

# What cannot be fetched along the way. Everything that is missing is named, not only the first.
requirements:
	@missing=""; \
	command -v $(CARGO) >/dev/null 2>&1 || missing="$$missing\n  cargo: the Rust toolchain, 1.94 or later (rustup)"; \
	command -v cc >/dev/null 2>&1 || missing="$$missing\n  cc: a C compiler (Debian: gcc, Fedora: gcc, macOS: xcode-select --install)"; \
	command -v python3 >/dev/null 2>&1 || missing="$$missing\n  python3: fetches the pinned Postgres (Debian: python3, Fedora: python3)"; \
	if command -v python3 >/dev/null 2>&1 && [ -z "$$REMEASURE_POSTGRES" ]; then \
	  python3 -m pip --version >/dev/null 2>&1 || missing="$$missing\n  pip: fetches the pinned Postgres (Debian: python3-pip, Fedora: python3-pip)"; fi; \
	if [ -n "$$missing" ]; then printf "missing on this machine:$$missing\n" >&2; exit 4; fi
