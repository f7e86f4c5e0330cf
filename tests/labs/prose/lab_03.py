"""Lab 03: the lookup table."""
from facts import picture


def columns(pages, vector=8, spare=16):
    """The pages rounded up to a multiple of 8, and 16 more."""
    return -(-pages // vector) * vector + spare


def write(lab, readme, notes, hints):
    page_size, pool, vector, spare = 4, 8, 8, 16
    null, first = pool, 0
    tokens, held = {0: 9, 1: 4}, {0: [5, 2, 7], 1: [0, 3]}
    pages = {request: held[request][:-(-count // page_size)] for request, count in tokens.items()}
    reserved = held[1][len(pages[1]):]
    order = [1, 0, -1]
    longest = max(map(len, pages.values()))
    width = columns(longest)
    readme.claim("Pages of # tokens; the pool has # blocks, and block # is the null page.", page_size, pool, null)
    readme.claim("Request # has # tokens in blocks #, # and #. Request # has # tokens in block #, and has reserved block #.",
                 first, tokens[first], *pages[0],
                 order[0], tokens[1], *pages[1], *reserved)
    readme.claim("The batch has the order #, #, -#: @ rows", order[0], order[1], -order[2], len(order))
    readme.claim("The longest request has # pages, so the table has # + # = # columns", longest, width - spare, spare, width)
    readme.claim("| row | request | column # | # | # | # to # |", *range(longest), longest, width - 1)
    table = [(pages.get(request, []) + [null] * width)[:width] for request in order]
    assert all(set(row[longest:]) == {null} for row in table)
    for row, request in enumerate(order[:2]):
        readme.claim("| # | # | # | # | # | # |", row, request, *table[row][:longest], table[row][longest])
    readme.claim("| # | none | # | # | # | # |", order.index(-1), *table[2][:longest], table[2][longest])
    narrow, at = longest, longest - 1
    readme.claim("Suppose the table of the example had # columns. Which entries would a read of # entries at column # of row # return?",
                 narrow, vector, at,
                 order.index(order[0]))
    readme.claim("a table for # pages have? For #?", vector + 1, vector)
    moving = picture("motion_pages.gif")
    readme.claim("@ steps of a run", int(moving["to"]) - int(moving["step"]))
    zero, minus = 0, -1
    readme.claim("Why must an unused entry not be #? Not -#?", zero, -minus)
    readme.claim("the pages, rounded up to #, and exactly # more: room for a read of # entries", vector, spare, spare)
    small = [entry for row in table for entry in row[:narrow]]
    read = small[at:at + vector]
    assert read == [8, *table[1][:3], *table[2][:3]] and len(read) == vector - 1  # one entry after the table
    notes.claim("#, then row #: #, #, #, and row #: #, #, #, and one entry after the table",
                read[0], order.index(0), *read[1:4], order.index(-1), *read[4:7])
    notes.claim("# for # pages, # for #.", columns(vector + 1), vector + 1, columns(vector), vector)
    notes.claim("block # belongs to a request", pages[1][0])
    notes.claim("-# becomes # blocks", -minus, f"{minus % (1 << 32):,}")
    hints[1].claim("A kernel reads # or # entries", vector, spare)
    taken = 21
    hints[1].claim("Take # pages and # columns. A read of # entries at column # wants columns # to #: which row do columns # to # belong to?",
                   taken, taken,
                   vector, taken - 1, taken - 1, taken - 2 + vector, taken, taken - 2 + vector)
