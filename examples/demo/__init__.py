"""The whole story of mcptasks on real input: ``make demo``, or ``python -m examples.demo``."""
