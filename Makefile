PYTHON ?= python3
PIN ?= -c constraints.txt
VENV := .venv
BIN := $(VENV)/bin
RUN := OMP_NUM_THREADS=1 HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false

.PHONY: install train test test-oldest lint bench clean

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check $(PIN) -e '.[dev]'
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps bfcl-eval==2026.3.23
	touch $@

train: install
	$(BIN)/dynsteer train sb3 --preset quick

test: install lint
	$(RUN) $(BIN)/python -m pytest

# The oldest Gymnasium and SB3 that are supported, laid over the environment; this SB3 also wants pandas.
OLDEST := $(VENV)/oldest
$(OLDEST)/.installed: $(VENV)/.installed Makefile
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --upgrade --target $(OLDEST) gymnasium==1.2.0 stable-baselines3==2.7.0 sb3-contrib==2.7.0 pandas==3.1.1
	touch $@

test-oldest: $(OLDEST)/.installed
	$(RUN) PYTHONPATH=$(OLDEST) $(BIN)/python -c "import gymnasium, stable_baselines3 as s; assert (gymnasium.__version__, s.__version__) == ('1.2.0', '2.7.0')"
	$(RUN) PYTHONPATH=$(OLDEST) $(BIN)/python -m pytest tests/test_gymnasium.py tests/test_wrapper.py tests/training

lint: install
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/pyright

bench: install
	$(BIN)/dynsteer bench

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
