"""Why a row of ops.py is slower than 0.7 of torch on the CPU: what a profile of it showed. Key: operator, shape, direction.

Found with `perf record` and `perf annotate` on a loop over the row, and with counts of context switches (resource.getrusage).
"""

F16 = "58 % of it turns tiles into float32 and back, in the nearest cache, where torch converts in registers; 0.9 with one thread"
PLACEMENT = (
    "78 to 95 % is the kernel's loop, at the rate of memory, which depends on the physical pages that the buffers happen to get: add_ "
    "takes 40 or 72 us; less often the latter where they are huge (src/runtime/memory.c)"
)
STREAM = (
    "of all samples, 61 % (SGD), 62 % (AdamW), 74 % (cast), 64 % (embedding), 58 % (scatter_add), 55 % (index_select) and 47 % (gather) lie in loops "
    "that stream through memory; alone (--only) the row is at 0.8 to 1.8, in a long run now and then at half of that, and why isn't known"
)
SPREAD = "as add_ in place; and a fifth of the time goes into spreading each channel's number over a tile before the product"
FEW_CHANNELS = "3/5 in the product's inner loop and 2/5 in gathering its operand: 3 channels of 7 x 7 fill no vector without being gathered"
BF16_PRODUCTS = "torch takes the CPU's bf16 products; ours widen while packing and run at float32's rate"
BF16_ROUNDING = "93 % in the loop that rounds: 8 integer operations an element and a compare for NaN"
TRANSPOSITION = "91 % in the transposition of blocks of 64 x 64 elements, whose columns lie 12 KiB apart in memory"
GELU = (
    "58 % of its loop waits at the end of a chain that e^x and a division form; without fused multiply-adds, so that all instruction sets "
    "agree bit for bit"
)
LOGISTIC = "e^x, a polynomial and a division for each element without fused multiply-adds, so that all instruction sets agree bit for bit"
ROW_FOLD = "7 ns for a row of 49 elements, mostly the fold of its 64 lanes, which are as many on every instruction set so that sums agree"

REASONS: dict[tuple[str, str, str], str] = {
    ("mul", "1024x1024 f16", "forward"): F16,
    ("mul", "1024x1024 f16", "backward"): F16,
    ("add bias", "2048x1024, 1024", "forward"): PLACEMENT,
    ("mul channels", "16x64x56x56, 1x64x1x1", "forward"): SPREAD,
    ("add_ in place", "1024x1024", "forward"): PLACEMENT,
    ("mul_ number in place", "2048x2048", "forward"): PLACEMENT,
    ("lerp_ in place", "1024x1024", "forward"): PLACEMENT,
    ("relu", "64x64x32x32", "forward"): PLACEMENT,
    ("pow 2", "1024x1024", "forward"): PLACEMENT,
    ("pow 2", "1024x1024", "backward"): PLACEMENT,
    ("cast to bf16", "2048x2048", "forward"): BF16_ROUNDING,
    ("channels last", "16x64x56x56", "forward"): TRANSPOSITION,
    ("mm", "512 cubed bf16", "forward"): BF16_PRODUCTS,
    ("gelu", "1024x3072", "forward"): GELU,
    ("gelu", "512x3072 bf16", "forward"): GELU,
    ("gelu", "512x3072 bf16", "backward"): GELU,
    ("silu", "1024x1024", "forward"): LOGISTIC,
    ("silu", "1024x1024", "backward"): LOGISTIC,
    ("sigmoid", "256x256", "forward"): LOGISTIC,
    ("conv 7x7 stride 2", "4x3x224x224 to 64", "forward"): FEW_CHANNELS,
    ("AdamW fused", "25 tensors, 4 Mi", "forward"): STREAM,
    ("SGD momentum", "25 tensors, 4 Mi", "forward"): STREAM,
    ("cast to f32", "2048x2048 bf16", "forward"): STREAM,
    ("gather", "1024x1024 by 1024x256", "backward"): STREAM,
    ("scatter_add", "1024x256 into 1024x1024", "forward"): STREAM,
    ("embedding", "32000x512 by 2048", "forward"): STREAM,
    ("index_select", "4096x512 by 2048", "forward"): STREAM,
    ("index_select", "4096x512 by 2048", "backward"): STREAM,
    ("mean of planes", "32x512x7x7", "forward"): ROW_FOLD,
    ("adaptive_avg_pool 1", "32x512x7x7", "forward"): ROW_FOLD,
}
