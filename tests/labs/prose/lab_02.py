"""Lab 02: rows."""
import re

from facts import explained, page_block, starter


def write(lab, readme, notes, hints):
    page_size, layers, slots, table = 4, 3, 2, [3, 0, 1]  # of the example
    block_rows = slots * layers * page_size

    def place(token, rows=block_rows):
        page, slot = divmod(token, page_size)
        return page, slot, table[page], table[page] * rows + slot

    readme.claim("An example: pages of # tokens, # layers, K and V. Sequence # has its first @ pages in blocks #, # and #.", page_size, layers,
                 table[1], len(table), *table)
    readme.claim("A block has # * # * # = # rows", slots, layers, page_size, block_rows)
    for token in (2, 5, 9):
        page, slot, held, row = place(token)
        readme.claim("| # | # | # | # | # * # + # = # |", token, page, slot, held, held, block_rows, slot, row)
    # The figure is of page 02's scenario, sequence 1, layer 1.
    sequence, layer = 1, 1
    shown = page_block("02_lookup_table_and_rows.md", "ten_blocks.json")
    links = [explained(shown, "--seq", sequence, "--token", token, "--layer", layer, "--kv", "v", "--step", 3) for token in (0, 4, 8)]
    other = [int(link["block"][-1]) for link in links]
    pages = [int(link["page"][-1]) for link in links]
    apart = int(links[0]["rows per block"][-1])
    other_page_size = shown["cache"]["page_size"]
    other_layers = apart // slots // other_page_size
    readme.claim("in which sequence # has its pages in blocks #, # and #. The rows of V of layer # are # rows apart", sequence, *other, layer, apart)
    readme.claim("Pages # to # of sequence # in blocks #, # and #; the rows of V of layer # are # rows apart",
                 pages[0], pages[-1], sequence, *other, layer, apart)
    tokens_of_task_1 = (3, 4, 11)
    readme.claim("Work out the row of tokens #, # and #", *tokens_of_task_1)
    vector = 16  # entries at most: docs/02 and table_columns of lab 03
    readme.claim("kernels read up to # entries at a time", vector)
    tile, page = 64, 16
    readme.claim("A tile of # tokens over pages of # has # parts", tile, page, tile // page)
    readme.claim("A tile of # tokens inside a page of #", page, tile)
    doubled = 2 * layers
    readme.claim('With `"layers": #` instead of #', doubled, layers)
    functions = re.findall(r"(?m)^\w[\w:]* \w+\(", starter(lab, "rows.h"))
    readme.claim("you write the @ functions", len(functions))
    readme.exempt("other layers between two blocks", "policy")
    rows = [place(token)[3] for token in tokens_of_task_1]
    notes.claim("token # is in row #, token # in row #, token # in row #", *[n for token, row in zip(tokens_of_task_1, rows) for n in (token, row)])
    assert place(4, slots * doubled * page_size)[3] == place(4)[3]  # block 0
    notes.claim("all rows of blocks other than # change, because a block has # rows", table[1], slots * doubled * page_size)
    assert rows[1] < rows[0]
    notes.claim("Why is the row of token # smaller than that of token #?* Its page is in block #.",
                tokens_of_task_1[1], tokens_of_task_1[0], table[1])
    notes.claim("Why # * layers?", slots)
    first = 0
    notes.claim("layer #'s K of block # in the #-D array", first, first + 1, len(("block", "k_or_v", "layer", "page_row", "head", "head_dim")))
    notes.claim("select a token of sequence #", first)
    token = 5
    hints[1].claim("Work out token # with pages of # tokens on paper: page #, slot #.", token, page_size, *place(token)[:2])
    hints[2].claim("With # layers, K and V, and pages of # tokens that is # * # * # = # rows", other_layers, other_page_size, slots, other_layers,
                   other_page_size, apart)
