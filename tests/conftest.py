"""Settings for all tests."""

import os

# One thread for NumPy's matrix products: those of `montecarlo.py` are small, and pytest runs as
# many processes as there are cores. It has to be said before NumPy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
