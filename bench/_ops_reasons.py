"""Why a row of ops.py is slower than 0.7 of torch on the CPU: what a profile of it showed. Key: operator, shape, direction."""

REASONS: dict[tuple[str, str, str], str] = {}
