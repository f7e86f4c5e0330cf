"""Lab 04: the block pool. The pool is simulated by the program: the handout's scenario and its events."""
from facts import block, events, gallery


def write(lab, readme, notes, hints):
    scenario = block(lab, "pool.json")
    page_size, blocks = scenario["cache"]["page_size"], scenario["cache"]["blocks"]
    first, second = scenario["requests"]["list"]
    run = events(scenario, "block_released", "block_copied", "block_evicted", "block_shared", "block_allocated")
    samples = first["samples"]
    readme.claim("Pages of # tokens, a pool of # blocks. A request of # tokens is answered twice, by sequences # and #. Later sequence # begins",
                 page_size,
                 blocks, first["prompt_tokens"], samples - 2, samples - 1, samples)
    assert first["content"][0] == second["content"][0]  # sequence 2 begins with the same page
    copied, = [fields for kind, fields, _ in run if kind == "block_copied"]
    readme.claim("`append(#)` in the fourth row stores a token in the last page of sequence #, which sequence # holds too. Sequence # gets "
                 "a copy, block #.",
                 copied["seq"], copied["seq"], 1 - copied["seq"], copied["seq"], copied["to"])
    readme.claim("The next `append(#)` finds that sequence # is alone in block #", 1 - copied["seq"], 1 - copied["seq"], copied["from"])
    released = [fields for kind, fields, _ in run if kind == "block_released" and fields["seq"] == 0]
    readme.claim("`release(#)` releases blocks #, # and #, in this order.", copied["seq"], *[fields["block"] for fields in released])
    by_state = {(fields["ref_count"], fields["cached"]): fields["block"] for fields in released}
    readme.claim("Block # is free, because its page was never full. Block # is cached", by_state[0, 0], by_state[0, 1])
    readme.claim("Block # is still held by sequence #.", by_state[1, 0], 1 - copied["seq"])
    shared = [fields for kind, fields, _ in run if kind == "block_shared" and fields["seq"] == samples][0]
    readme.claim("`share(#)` finds the first page of sequence # in block #", samples, samples, shared["block"])
    evicted, = [fields["block"] for kind, fields, _ in run if kind == "block_evicted"]
    cached = [fields["block"] for kind, fields, step in run if kind == "block_released" and fields["cached"] and step < 3]
    left = [held for held in cached if held != shared["block"]]  # in the order of their release
    assert left[0] == evicted
    readme.claim("why is block # evicted and not block #", evicted, left[1])
    readme.claim("The @ blocks of the example after each call", blocks)

    notes.claim("blocks # and #. Sequence # released block # before sequence # released block #.",
                *left, copied["seq"], left[0], 1 - copied["seq"], left[1])
    notes.exempt('"has two owners" names two calls', "name")
    samples_run = events(gallery("parallel_samples.json"), "block_copied")
    copies = [fields["from"] for _, fields, step in samples_run]
    step, = {step for *_, step in samples_run}
    notes.claim("step #: @ samples copy block #, and the third writes in place", step, len(copies), *set(copies))
    sharing = events(gallery("prefix_sharing.json"), "block_shared")
    of_cached = [step for _, fields, step in sharing if fields["ref_count"] == 1]
    shown = 19
    assert shown in of_cached
    notes.claim("step #: a block that was cached is shared again", of_cached[of_cached.index(shown)])
    states, lists = ("free", "cached", "held"), ("free", "cached")
    hints[1].claim("@ states of a block", len(states))
    hints[1].claim("in one of the @ lists", len(lists))
    hints[3].exempt("`n % page_size == 0`", "code")
