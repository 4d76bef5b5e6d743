# Everything runs in .venv, which the first command creates by itself.
PYTHON ?= python3
BIN := .venv/bin
# Python keeps what it has compiled, also where the environment says otherwise: collecting the tests takes a third less
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup docs notebooks picture activation-pictures finite-results test test-slow lint types demo accuracy gram images first-number posterior tightness width growth training tangent watch scale bench peers peers-report golden clean

setup: .venv/installed

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy

docs: setup  ## the site, in out/site; nothing is fetched
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

notebooks: setup  ## run all notebooks from scratch and write them back with their outputs
	$(BIN)/python notebooks/execute.py

picture: setup  ## docs/assets/one-layernorm.png and saturating.png
	$(BIN)/python docs/tools/picture.py
	$(BIN)/python docs/tools/saturating.py

activation-pictures: setup  ## docs/assets/activation-kernels.png and activation-rays.png
	$(BIN)/python docs/tools/activation_pictures.py

finite-results: setup  ## tables and figures of the pages on finite networks, from full runs in out/
	$(BIN)/python docs/tools/finite_results.py

test: lint types docs  ## lint, type-check and test
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow"

test-slow: setup  ## the long tests only: an hour and more
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow

demo: setup  ## with and without LayerNorm far from the data: kernels, trained networks, bound
	$(BIN)/lnkernel demo

accuracy: setup  ## error of every kernel against 50 digits
	$(BIN)/python -m benchmarks.accuracy

gram: setup  ## speed of the Gram matrix beside neural-tangents
	$(BIN)/python -m benchmarks.gram

images: setup  ## work and memory of kernels of images beside neural-tangents: docs/images.md
	$(BIN)/python -m benchmarks.images --publish

first-number: setup  ## how long the first call takes, in fresh processes
	$(BIN)/python -m benchmarks.first_number

posterior: setup  ## speed and error of the posterior beside neural-tangents
	$(BIN)/python -m benchmarks.posterior

tightness: setup  ## each bound beside the true supremum of the mean
	$(BIN)/python -m benchmarks.bound_tightness

width: setup  ## finite networks beside Θ, from width 128 to 4096
	$(BIN)/python -m benchmarks.width

growth: setup  ## how Θ̂(x, x) of finite networks grows with |x|, by activation and LayerNorm
	$(BIN)/python -m benchmarks.growth

training: setup  ## speed of training an ensemble beside PyTorch
	$(BIN)/python -m benchmarks.training

watch: setup  ## what it costs to watch a training
	$(BIN)/python -m benchmarks.watch

tangent: setup  ## spectrum of a million parameters' kernel without the Jacobian, beside torch.func: docs/tangent.md
	$(BIN)/python -m benchmarks.tangent --publish $(if $(FORMER),--former $(FORMER))

scale: setup  ## more points: one machine, iteration, processes: docs/scale.md; a quarter of an hour or more
	$(BIN)/python -m benchmarks.scale --publish

bench: setup  ## all benchmarks in one report; QUICK=--quick for the short form of each
	$(BIN)/lnkernel bench $(QUICK)

peers: setup  ## the separate environments of neural-tangents, GPJax, PyTorch, laplace-torch and GPyTorch
	$(BIN)/python -m benchmarks.peers.environment

peers-report: setup  ## agreement, accuracy, speed and memory beside them: docs/peers.md, README.md
	$(BIN)/python -m benchmarks.against_peers --publish

golden: setup  ## the reference kernels of neural-tangents that the tests hold ours against
	$(BIN)/python -m benchmarks.peers.golden

clean:
	rm -rf .venv .venv-peers .venv-gpjax .venv-torch .venv-laplace .venv-gpytorch build dist out
