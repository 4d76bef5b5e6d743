"""Any finite network through its derivative in the parameters: kernel, spectrum, linearization,
regularised fine-tuning, Laplace."""
