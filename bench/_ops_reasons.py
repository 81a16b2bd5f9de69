"""Why a row of ops.py is slower than 0.7 of torch on the CPU: what a profile of it showed. Key: operator, shape, direction.

Found with `perf record` and `perf annotate` on a loop over the row, and with counts of context switches (resource.getrusage).
"""

F16 = "conversions are integer arithmetic, about 12 operations for an element read and 14 for one written; torch has the CPU's instruction for it"
BF16_PRODUCTS = "torch takes the CPU's bf16 products; ours widen while packing and run at float32's rate"
GELU = "e^x, a polynomial and a division for each element without fused multiply-adds, so that all instruction sets agree bit for bit"
ROW_FOLD = "7 ns for a row of 49 elements, mostly the fold of its 64 lanes, which are as many on every instruction set so that sums agree"

REASONS: dict[tuple[str, str, str], str] = {
    ("mul", "1024x1024 f16", "forward"): F16,
    ("mul", "1024x1024 f16", "backward"): F16,
    ("mm", "512 cubed bf16", "forward"): BF16_PRODUCTS,
    ("gelu", "512x3072 bf16", "forward"): GELU,
    ("gelu", "512x3072 bf16", "backward"): GELU,
    ("sigmoid", "256x256", "forward"): GELU,
    ("mean of planes", "32x512x7x7", "forward"): ROW_FOLD,
    ("adaptive_avg_pool 1", "32x512x7x7", "forward"): ROW_FOLD,
}
