"""Lab 11: a tile by TMA."""
from facts import ROOT, constant, number_in, starter
from lab_10 import schedule_count

BF16, CHUNK, LINES = 2, 16, 8  # [bytes], [bytes], rows of the period of the 128-byte swizzle


def write(lab, readme, notes, hints):
    text = starter(lab, "tile.cu")
    rows, columns = constant("tma_case.h", "kTileRows"), constant("tma_case.h", "kTileColumns")
    map_rows = number_in((ROOT / "apps/labs/tma_case.h").read_text(encoding="utf-8"), r"kMapRows = (\d+)")
    pages = sorted(constant("lab_11_tma_tile.cpp", "kPages"))
    row_bytes = number_in(text, r"with a (\d+)-byte swizzle")
    box_columns = row_bytes // BF16
    halves = columns // box_columns
    half = rows * row_bytes
    tile_bytes = rows * columns * BF16
    assert tile_bytes == number_in(text, r"buffer\[(\d+)\]") == half * halves
    schedules, first = schedule_count(), 0

    readme.claim("phases and parity, the #-byte swizzle", row_bytes)
    readme.claim("here # rows of # columns", map_rows, columns)
    readme.claim("# / `pages` rows of # columns", rows, box_columns)
    bits = number_in(starter(lab, "tma.h"), r"mbarrier\.init\.shared::cta\.b(\d+)")
    readme.claim("A *barrier* is # bytes of shared memory", bits // 8)
    phases = (0, 1)
    readme.claim("the number of the phase modulo #: `barrier_wait` waits for #, #, #, ...", len(phases), *phases, phases[0])
    random = schedules - len(("late", "early"))
    readme.claim("(`seed #` to `seed #`). A right kernel is right under all @", phases[1], random, schedules)
    readme.claim("@ boxes of V: their chunks move from the rows of @ blocks", len(phases), len(phases))
    readme.claim("@ boxes of V: their chunks fly from the rows of @ blocks", len(phases), len(phases))
    readme.claim("A tile is # rows of # columns of bf16: # bytes. Its rows come from #, #, # or # pages", rows, columns, tile_bytes, *pages)
    example = [576, 448, 64, 192]  # of the table
    of_page = rows // len(example)
    assert all(at % of_page == 0 and at + of_page <= map_rows for at in example)
    readme.claim("With # pages and `rows` = #, #, #, #, the @ boxes are", len(example), *example, halves * len(example))
    readme.claim("| page | map row | columns # to # at byte | columns # to # at byte |", first, box_columns - 1, box_columns, columns - 1)
    for page, at in enumerate(example):
        readme.claim("| # | # | # | # |", page, at, page * of_page * row_bytes, half + page * of_page * row_bytes)
    fewer = 2
    box_rows = rows // fewer
    readme.claim("Fill in the table for # pages on paper", fewer)
    row, column = 3, 8
    chunk = column * BF16 // CHUNK
    place = chunk ^ row % LINES
    readme.claim("the chunk of row # that begins at column #", row, column)
    readme.claim("each page is copied by @ boxes", halves)
    readme.claim("elements under @ schedules: the wait", schedules)
    readme.claim("the same buffer under @ schedules", schedules)
    readme.claim("rows[#] at bytes # and #, rows[#] at bytes # and #. A box has # rows of # bytes, # bytes.",
                 first, first, half, phases[1], box_rows * row_bytes,
                 half + box_rows * row_bytes, box_rows, row_bytes, box_rows * row_bytes)
    readme.claim("chunk # of row # is stored as chunk # ^ # = #, at byte # * # + # * # = #.",
                 chunk, row, chunk, row, place, row, row_bytes, place, CHUNK,
                 row * row_bytes + place * CHUNK)

    notes.claim("Why @ boxes for a page?* With a #-byte swizzle, a row of a box has at most # bytes: # elements of bf16",
                halves, row_bytes, row_bytes, box_columns)
    notes.claim("draws the @ rows of the pattern", LINES)
    hints[1].claim("A tile of # rows has # / `pages` rows of each page. A page needs @ boxes, because a box is # columns wide: the swizzle "
                   "limits a row of a box to # "
                   "bytes", rows, rows, halves, box_columns, row_bytes)
    hints[1].claim("columns # and #. In the buffer, the box of page p and half h begins at byte `h * # + p * (# / pages) * #`. With # "
                   "pages, page # has its boxes at "
                   "bytes # and #.",
                   first, box_columns, half, rows, row_bytes, len(example), phases[1], of_page * row_bytes, half + of_page * row_bytes)
    hints[2].claim("Thread # makes the barrier", first)
    hints[2].claim("Thread # arrives once and announces all bytes of the tile at once, # rows x # columns x # bytes", first, rows, columns, BF16)
    hints[2].claim("The first phase has parity #", phases[0])
    hints[3].claim("the # bytes (a *chunk*) with number c of row r are stored as chunk `c ^ (r % #)` of that row. Row #, columns # to #: "
                   "chunk # is stored as chunk "
                   "# ^ # = #, at byte # * # + # * # = #.",
                   CHUNK, LINES, row, column, column + CHUNK // BF16 - 1, chunk, chunk, row, place, row, row_bytes, place,
                   CHUNK, row * row_bytes + place * CHUNK)
    hints[3].claim("parity `n % #`", len(phases))
    hints[3].exempt("The copies of tile n + 1", "code")
    hints[3].claim("Thread # may issue them", first)
