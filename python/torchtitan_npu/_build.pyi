"""Facts of this build, written by setup.py."""

TORCH_VERSION: str
