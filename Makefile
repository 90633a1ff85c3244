# Every target sets up what it needs, once, in .venv and node_modules.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NB     ?= chapters/*.ipynb exercises/*.ipynb
PORT   ?= 8000
WITH   := PATH="$(CURDIR)/$(BIN):$$PATH"

.PHONY: help book serve test lab execute exercises lint format grade bench clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' Makefile

book: $(VENV)/site.ok node_modules/ok ## build the site into _build/html
	@$(WITH) jupyter-book build . -W -n --keep-going --quiet
	@echo "The book is at _build/html/index.html; live figures need \`make serve\`."

serve: book ## build the site and serve it on PORT (8000)
	@$(PYTHON) tools/serve.py _build/html $(PORT)

test: $(VENV)/all.ok book ## run every notebook, unit test and site test
	@$(WITH) pytest -n 2

lab: $(VENV)/all.ok ## open the notebooks in JupyterLab
	@$(WITH) jupyter lab chapters

execute: $(VENV)/all.ok ## re-run the notebooks NB=… in place and normalise them
	@$(WITH) python tools/execute.py $(NB)

exercises: $(VENV)/all.ok ## write the exercise notebooks from their questions (NB=… or all)
	@$(WITH) python tools/exercises.py $(if $(filter command%,$(origin NB)),$(NB))

lint: $(VENV)/all.ok ## check code and notebooks
	@$(WITH) ruff check . && $(BIN)/ruff format --check .

format: $(VENV)/all.ok ## mend what lint can mend
	@$(WITH) ruff check --fix . && $(BIN)/ruff format .

grade: $(VENV)/all.ok ## grade the submitted notebooks in the folder DIR=…, options in ARGS="…"
	@test -n "$(DIR)" || { echo "make grade DIR=…: name the folder of notebooks"; exit 2; }
	@$(WITH) python -m shardmath.grading $(ARGS) "$(DIR)"

bench: $(VENV)/all.ok book ## measure page weight, start-up and build times
	@for b in site live hlo; do $(WITH) python benchmarks/$$b.py || exit 1; done

clean: ## remove what was built; readers' progress stays
	@rm -rf _build node_modules $(VENV) .pytest_cache .ruff_cache .hypothesis

$(VENV)/python.ok:
	@$(PYTHON) tools/setup.py venv $(VENV)
	@touch $@

$(VENV)/site.ok: requirements-site.txt pyproject.toml $(VENV)/python.ok
	@$(PYTHON) tools/setup.py lock $(VENV) $<
	@$(PYTHON) tools/setup.py package $(VENV)
	@touch $@

$(VENV)/all.ok: requirements.txt $(VENV)/site.ok
	@$(PYTHON) tools/setup.py lock $(VENV) $<
	@touch $@

node_modules/ok: package-lock.json $(VENV)/python.ok
	@$(PYTHON) tools/setup.py node $(VENV)
	@touch $@
