/* Cuts matrix products into tiles for the pool. See matmul.h.
 *
 * Invariant: the cut depends on the number of threads, the result doesn't (kernels/gemm.h). */
#include "aclnn/nn/matmul.h"

#include <stdatomic.h>

#include "base/arithmetic.h"
#include "base/error.h"
#include "base/pool.h"
#include "kernels/kernels.h"

enum { ITEM_COST = 1 << 19, LARGE_TILE = 1 << 25, TILES_PER_THREAD = 4 }; /* multiply-adds; an item takes about 6 us */

struct tiles {
    const struct gemm_problem *problem;
    matmul_advance_fn advance;
    const void *context;
    gemm_tile_fn kernel;
    int64_t row_tiles, column_tiles, rows, columns; /* tiles each way, and the size of one */
    _Atomic int failed;
};

static void run_tiles(void *argument, int64_t begin, int64_t end)
{
    struct tiles *const t = argument;
    void *const scratch = pool_scratch(0, kernels->gemm->scratch_bytes);
    if (!scratch) {
        t->failed = 1;
        return;
    }
    for (int64_t item = begin; item < end; ++item) {
        struct gemm_problem problem = *t->problem;
        const int64_t per_batch = t->row_tiles * t->column_tiles, index = item % per_batch;
        if (t->advance)
            t->advance(t->context, item / per_batch, &problem);
        struct gemm_tile tile = {.row = index % t->row_tiles * t->rows, .column = index / t->row_tiles * t->columns};
        tile.rows = problem.rows - tile.row < t->rows ? problem.rows - tile.row : t->rows;
        tile.columns = problem.columns - tile.column < t->columns ? problem.columns - tile.column : t->columns;
        t->kernel(&problem, &tile, scratch);
    }
}

/* Tiles of equal size: as large as the kernel takes, then smaller until every thread has work and the last ones end together. */
static void choose_tiles(struct tiles *t, int64_t batches, bool vector)
{
    const struct gemm_kernels *const k = kernels->gemm;
    const struct gemm_problem *const p = t->problem;
    const int64_t wanted = pool_threads() > 1 ? TILES_PER_THREAD * (int64_t)pool_threads() : 1;
    t->row_tiles = vector ? 1 : divide_up(p->rows, k->tile_rows);
    t->column_tiles = divide_up(p->columns, k->tile_columns);
    for (;;) {
        const int64_t rows = divide_up(p->rows, t->row_tiles), columns = divide_up(p->columns, t->column_tiles);
        const bool few = t->row_tiles * t->column_tiles * batches < wanted;
        const bool uneven = t->row_tiles * t->column_tiles * batches % pool_threads() != 0;
        if (!(few && uneven) && !(few && rows * columns * p->depth > (int64_t)LARGE_TILE))
            break;
        if (rows * round_up(columns, k->column_unit) * p->depth < 2 * ITEM_COST) /* a kernel's columns cost the same when unused */
            break;
        if (columns >= rows && columns >= 2 * k->column_unit)
            t->column_tiles *= 2;
        else if (!vector && rows >= 2 * k->row_unit)
            t->row_tiles *= 2;
        else if (columns >= 2 * k->column_unit)
            t->column_tiles *= 2;
        else
            break;
    }
    t->rows = divide_up(p->rows, t->row_tiles);
    t->columns = divide_up(divide_up(p->columns, t->column_tiles), k->column_unit) * k->column_unit;
    if (t->columns > k->tile_columns)
        t->columns = k->tile_columns;
    t->row_tiles = divide_up(p->rows, t->rows);
    t->column_tiles = divide_up(p->columns, t->columns);
}

int matmul_run(const struct gemm_problem *problem, enum dtype compute, int64_t batches, matmul_advance_fn advance,
               const void *context)
{
    if (problem->rows == 0 || problem->columns == 0 || batches == 0)
        return 0;
    const bool vector = problem->rows == 1 && kernels->gemm->vector[compute];
    struct tiles t = {.problem = problem, .advance = advance, .context = context};
    t.kernel = vector ? kernels->gemm->vector[compute] : kernels->gemm->tile[compute];
    REQUIRE(t.kernel, ACLNN_ERROR_PARAM, "there is no matrix product for %s", dtype_name(compute));
    choose_tiles(&t, batches, vector);
    const int64_t items = batches * t.row_tiles * t.column_tiles;
    const int64_t cost = t.rows * round_up(t.columns, kernels->gemm->column_unit) * (problem->depth > 0 ? problem->depth : 1);
    int64_t grain = cost >= ITEM_COST ? 1 : ITEM_COST / cost;
    if (grain > 1 && grain * 2 * pool_threads() > items && items * cost > 4 * ITEM_COST)
        grain = divide_up(items, 2 * (int64_t)pool_threads());
    pool_for(items, grain, run_tiles, &t);
    REQUIRE(!t.failed, ERROR_RT_MEMORY_ALLOCATION, "no memory for %zu bytes of scratch", kernels->gemm->scratch_bytes);
    return 0;
}
