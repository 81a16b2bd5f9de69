/* Template: the transforms of two dimensions for tiles of TILE x TILE results. TILE is the includer's; lines are columns first,
 * then rows (conv_winograd_lines.h). POINTS lines of POINTS elements become planes that lie `plane` elements apart. */
#define NAME(name) GEMM_NAME(name, TILE)
#define POINTS (TILE + 2)

/* B' d B of the tiles of a strip: V [points^2][channels / L][tile][L]. */
static void NAME(transform_image)(const struct tiling *t, const float *image, int64_t first_row, int64_t rows, struct place at,
                                  float *v)
{
    const int64_t tiles = at.tiles, plane = plane_of(t->channels * tiles);
    for (int64_t b = 0; b < t->channels / L; ++b)
        for (int64_t y = 0; y < rows; ++y)
            for (int64_t x = 0; x < t->tile_columns; ++x) {
                const float *const d = image + ((first_row + y) * t->width + x) * TILE * t->channels + b * L;
                float *const out = v + (b * tiles + at.first + y * t->tile_columns + x) * L;
                vector_f32 columns[POINTS][POINTS], line[POINTS];
#pragma GCC unroll 6
                for (int j = 0; j < POINTS; ++j) {
#pragma GCC unroll 6
                    for (int i = 0; i < POINTS; ++i)
                        line[i] = LOAD(d + (i * t->width + j) * t->channels);
                    NAME(image_line)(line, columns[j]);
                }
#pragma GCC unroll 6
                for (int i = 0; i < POINTS; ++i) {
                    vector_f32 row[POINTS];
#pragma GCC unroll 6
                    for (int j = 0; j < POINTS; ++j)
                        row[j] = columns[j][i];
                    NAME(image_line)(row, line);
#pragma GCC unroll 6
                    for (int j = 0; j < POINTS; ++j)
                        STORE(out + (i * POINTS + j) * plane, line[j]);
                }
            }
}

/* A y A' of the gradients of a strip, `channels` of them: Y [points^2][channels / PANEL][tile][PANEL]. */
static void NAME(transform_gradient)(const struct tiling *t, const float *image, int64_t channels, int64_t first_row, int64_t rows,
                                     struct place at, float *out_)
{
    const int64_t tiles = at.tiles, plane = plane_of(channels * tiles);
    for (int64_t b = 0; b < channels / L; ++b)
        for (int64_t y = 0; y < rows; ++y)
            for (int64_t x = 0; x < t->tile_columns; ++x) {
                const float *const d = image + ((first_row + y) * t->width + x) * TILE * channels + b * L;
                float *const out = out_ + (b / 2 * tiles + at.first + y * t->tile_columns + x) * PANEL + b % 2 * L;
                vector_f32 columns[TILE][POINTS];
#pragma GCC unroll 4
                for (int j = 0; j < TILE; ++j) {
                    vector_f32 line[TILE];
#pragma GCC unroll 4
                    for (int i = 0; i < TILE; ++i)
                        line[i] = LOAD(d + (i * t->width + j) * channels);
                    NAME(gradient_line)(line, columns[j]);
                }
#pragma GCC unroll 6
                for (int i = 0; i < POINTS; ++i) {
                    vector_f32 row[TILE], line[POINTS];
#pragma GCC unroll 4
                    for (int j = 0; j < TILE; ++j)
                        row[j] = columns[j][i];
                    NAME(gradient_line)(row, line);
#pragma GCC unroll 6
                    for (int j = 0; j < POINTS; ++j)
                        STORE(out + (i * POINTS + j) * plane, line[j]);
                }
            }
}

/* A' m A + bias of one row of tiles and one panel of rows: lines [TILE][tile_columns * TILE][PANEL]. */
static void NAME(transform_result)(const struct tiling *t, const float *m, int64_t plane, const float *bias, float *lines)
{
    const int64_t line_step = TILE * t->tile_columns * PANEL;
    for (int64_t x = 0; x < t->tile_columns; ++x)
        for (int half = 0; half < PANEL; half += L) {
            const float *const from = m + x * PANEL + half;
            float *const to = lines + x * TILE * PANEL + half;
            const vector_f32 offset = LOAD(bias + half);
            vector_f32 columns[POINTS][TILE];
#pragma GCC unroll 6
            for (int j = 0; j < POINTS; ++j) {
                vector_f32 line[POINTS];
#pragma GCC unroll 6
                for (int i = 0; i < POINTS; ++i)
                    line[i] = LOAD(from + (i * POINTS + j) * plane);
                NAME(result_line)(line, columns[j]);
            }
#pragma GCC unroll 4
            for (int i = 0; i < TILE; ++i) {
                vector_f32 row[POINTS], line[TILE];
#pragma GCC unroll 6
                for (int j = 0; j < POINTS; ++j)
                    row[j] = columns[j][i];
                NAME(result_line)(row, line);
#pragma GCC unroll 4
                for (int j = 0; j < TILE; ++j)
                    STORE(to + i * line_step + j * PANEL, line[j] + offset);
            }
        }
}

/* G g G' of one panel of rows: weight t at g + t * PANEL. */
static void NAME(transform_filter)(const float *g, float *out, int64_t plane)
{
    for (int half = 0; half < PANEL; half += L, g += L, out += L) {
        vector_f32 columns[3][POINTS];
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j) {
            const vector_f32 line[3] = {LOAD(g + j * PANEL), LOAD(g + (3 + j) * PANEL), LOAD(g + (6 + j) * PANEL)};
            NAME(filter_line)(line, columns[j]);
        }
#pragma GCC unroll 6
        for (int i = 0; i < POINTS; ++i) {
            const vector_f32 row[3] = {columns[0][i], columns[1][i], columns[2][i]};
            vector_f32 line[POINTS];
            NAME(filter_line)(row, line);
#pragma GCC unroll 6
            for (int j = 0; j < POINTS; ++j)
                STORE(out + (i * POINTS + j) * plane, line[j]);
        }
    }
}

/* G' du G, a vector of rows: nine weights from points^2 sums. */
static void NAME(transform_weights)(const vector_f32 *du, vector_f32 *weights)
{
    vector_f32 lines[POINTS][3];
    for (int i = 0; i < POINTS; ++i)
        NAME(weights_line)(du + i * POINTS, lines[i]);
    for (int j = 0; j < 3; ++j) {
        vector_f32 column[POINTS], line[3];
        for (int i = 0; i < POINTS; ++i)
            column[i] = lines[i][j];
        NAME(weights_line)(column, line);
        for (int i = 0; i < 3; ++i)
            weights[3 * i + j] = line[i];
    }
}

#undef NAME
#undef POINTS
#undef TILE
