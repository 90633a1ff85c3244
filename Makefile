# Every target sets up what it needs, once, in .venv and node_modules.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
NB     ?= chapters/*.ipynb exercises/*.ipynb book/*.ipynb
PORT   ?= 8000
WITH   := PATH="$(CURDIR)/$(BIN):$$PATH"
SETUP   = GOAL="$(firstword $(MAKECMDGOALS) book)" $(PYTHON) tools/setup.py
FIRST  := $(firstword $(sort $(wildcard chapters/*.ipynb)))
# With these, live figures are saved in the notebook, and opening it changes nothing.
LIVE   := --LabApp.app_settings_dir="$(CURDIR)/tools/lab" --config="$(CURDIR)/tools/lab/jupyter_server_config.py"
ROOT   := $(if $(filter 0,$(shell id -u)),--allow-root)

# With the compilers in sight JAX must be told not to look for their machines.
SEEN    = $(if $(wildcard $(VENV)/compilers.ok),JAX_PLATFORMS=cpu PYTHONPATH="$(CURDIR)/$(VENV)/compilers:$$PYTHONPATH")

.PHONY: help book serve pdf test referee refit lab execute exercises tries lint format grade colab bench clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-9s %s\n", $$1, $$2}' Makefile

book: $(VENV)/site.ok node_modules/ok ## build the site into _build/html
	@$(WITH) $(SETUP) book $(VENV)
	@echo "The book is at _build/html/index.html; live figures need \`make serve\`."

serve: book ## build the site and serve it on PORT (8000)
	@$(WITH) python tools/serve.py _build/html $(PORT)

pdf: $(VENV)/all.ok book ## print the whole book into _build/shardmath.pdf
	@$(WITH) python tools/pdf.py

test: $(VENV)/all.ok book ## run every notebook, unit test and site test (ARGS="-k 04")
	@$(WITH) pytest -n auto --durations=20 $(ARGS)

referee: $(VENV)/compilers.ok $(VENV)/all.ok ## compile again what is kept of TPUs and GPUs (WRITE=1 keeps what is new)
	@$(WITH) python tools/referee.py $(VENV)/compilers $(if $(WRITE),--write) $(FILES)

refit: $(VENV)/python.ok ## fit the efficiencies of predictions to the public runs again
	@$(WITH) PYTHONPATH=book python tools/refit.py $(ARGS)

lab: $(VENV)/notebook.ok ## open the notebooks in JupyterLab (LAB="--no-browser --port 8890")
	@$(WITH) $(SEEN) jupyter lab $(LIVE) --LabApp.default_url=/lab/tree/$(FIRST) $(ROOT) $(LAB)

execute: $(VENV)/notebook.ok ## re-run the notebooks NB=… in place and normalise them
	@$(WITH) python tools/execute.py $(NB)

exercises: $(VENV)/notebook.ok ## write the exercise notebooks from their questions (NB=… or all)
	@$(WITH) python tools/exercises.py $(if $(filter command%,$(origin NB)),$(NB))

tries: $(VENV)/site.ok node_modules/ok ## find out which cells of changed chapters a page can run
	@$(WITH) python tools/tries.py $(ARGS)

lint: $(VENV)/all.ok ## check code and notebooks
	@$(WITH) ruff check . && $(BIN)/ruff format --check .

format: $(VENV)/all.ok ## mend what lint can mend
	@$(WITH) ruff check --fix . && $(BIN)/ruff format .

grade: $(VENV)/notebook.ok ## grade the submissions in the folder DIR=…, options in ARGS="…"
	@test -n "$(DIR)" || { echo "make grade DIR=…: name the folder of submissions"; exit 2; }
	@$(WITH) python -m shardmath.grading $(ARGS) "$(DIR)"

colab: $(VENV)/notebook.ok ## copies that install the book FROM=… themselves, in _build/colab
	@test -n "$(FROM)" || { echo "make colab FROM=…: name the address for pip"; exit 2; }
	@$(WITH) python tools/colab.py "$(FROM)"

bench: $(VENV)/all.ok book ## measure page weight, start-up and build times
	@for b in site search live hlo serving; do $(WITH) python benchmarks/$$b.py || exit 1; done

clean: ## remove what was built; readers' progress stays
	@rm -rf _build node_modules benchmarks/node_modules $(VENV) .pytest_cache .ruff_cache .hypothesis

# Each of these leaves its marker itself, and waits for another make that is at it.
$(VENV)/python.ok:
	@$(SETUP) python $(VENV)

$(VENV)/notebook.ok: requirements-notebook.txt requirements-build.txt pyproject.toml $(VENV)/python.ok
	@$(SETUP) notebook $(VENV)

$(VENV)/site.ok: requirements-site.txt requirements-build.txt pyproject.toml $(VENV)/python.ok
	@$(SETUP) site $(VENV)

$(VENV)/compilers.ok: requirements-referee.txt $(VENV)/python.ok
	@$(SETUP) compilers $(VENV)

$(VENV)/all.ok: requirements.txt requirements-build.txt pyproject.toml $(VENV)/python.ok
	@$(SETUP) all $(VENV)

node_modules/ok: package-lock.json $(VENV)/python.ok
	@$(SETUP) node $(VENV)
