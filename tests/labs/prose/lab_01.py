"""Lab 01: an address by hand."""
import json
import math
import re

from facts import ROOT, block, explained, gallery, number_in, starter

F16 = 2  # [bytes]


def write(lab, readme, notes, hints):
    scenario = block(lab, "small.json")
    model, cache = scenario["model"], scenario["cache"]
    layers, heads, dims = model["layers"], model["kv_heads"], model["head_size"]
    page_size, blocks = cache["page_size"], cache["blocks"]
    slots = 2  # K and V
    extents = [blocks + 1, slots, layers, page_size, heads, dims]
    strides = [math.prod(extents[axis + 1:]) for axis in range(len(extents))]
    assert cache["dtype"] == "f16"

    readme.claim("The scenario has # layers, # KV heads of # elements, pages of # tokens, f16, and # blocks", layers, heads, dims, page_size, blocks)
    readme.claim("The pool has # blocks", extents[0])
    readme.claim("Its extents are #, #, #, #, #, # and its strides #, #, #, #, #, #.", *extents, *strides)
    sequence, token, layer, head, dim = 1, 18, 2, 1, 3  # of the command in the handout
    command = f"kvscope explain small.json --seq {sequence} --token {token} --layer {layer} --head {head} --dim {dim} --kv v"
    assert command in lab.readme.read_text(encoding="utf-8")
    page, slot = divmod(token, page_size)
    readme.claim("Token # of sequence # is in page # (# / #), slot #.", token, sequence, page, token, page_size, slot)
    # The program's table gives the block; all else follows from the sizes.
    shown = re.search(r"block           lookup_table\[batch row\]\[page\]\n *= lookup_table\[(\d+)\]\[(\d+)\]\n *= (\d+)",
                      lab.readme.read_text(encoding="utf-8"))
    row_of_table, page_of_table, held = map(int, shown.groups())
    assert page_of_table == page
    readme.claim("Sequence # has finished by then, so sequence # is row # of the table", sequence - 1, sequence, row_of_table)
    index = [held, 1, layer, slot, head, dim]
    element = sum(i * s for i, s in zip(index, strides))
    readme.claim("V of layer #, head #, dim # is element # * # + # * # + # * # + # * # + # * # + # = #, which is byte #.", layer, head, dim,
                 *[n for i, s in zip(index[:5], strides[:5]) for n in (i, s)], dim, element, element * F16)
    of_row = heads * dims
    block_rows = strides[0] // of_row
    readme.claim("A row has # * # = # elements, so a block has # / # = # rows, and the token is in row # * # + # = #.", heads, dims, of_row,
                 strides[0], of_row, block_rows, held, block_rows, slot, held * block_rows + slot)

    answers = json.loads(starter(lab, "answers.json"))
    assert {"extents", "strides"} <= set(answers)
    readme.claim("lists of @ numbers for `extents` and `strides`", len(extents))
    readme.claim("the @ extents of the pool", len(extents))
    # The figure is of first_light.json.
    seq, tok = 3, 70
    links = explained(gallery("first_light.json"), "--seq", seq, "--token", tok)
    last = {name: re.findall(r"\d+", lines[-1]) for name, lines in links.items() if lines}
    readme.claim("Token # of sequence #: page #, block #, row #, tile #, box, shared byte #, bank #", tok, seq, last["page"][0], last["block"][0],
                 last["row"][0], last["tile"][0], last["swizzle"][1], last["bank"][0])

    source = (ROOT / "apps/labs/lab_01_address.cpp").read_text(encoding="utf-8")
    least_slot = number_in(source, r"slot = pick\((\d+), task\.page_size - 1\)")
    notes.claim("for your token, whose slot is at least #", least_slot)
    hints[1].claim("The last stride is #", strides[-1])
    hints[2].claim("The element is the sum of @ products", len(extents))
    hints[2].claim("K or V (# or #)", *range(slots))
