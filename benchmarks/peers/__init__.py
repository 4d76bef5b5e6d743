"""Other libraries, each in an environment and a process of its own; `inside/` is what runs there."""
