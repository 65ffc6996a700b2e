PYTHON ?= python3
PIN ?= -c constraints.txt
VENV := .venv
BIN := $(VENV)/bin
RUN := OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

.PHONY: install train test lint bench clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check $(PIN) -e '.[dev]'
	touch $@

train: install
	$(BIN)/dynsteer train sb3 --preset quick

test: install lint
	$(RUN) $(BIN)/python -m pytest

lint: install
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright

bench: install
	$(BIN)/dynsteer bench

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
