"""RCR Scope's core: full decoding under a KV selection policy, with instrumentation.

Dimension legend, used in comments and docstrings throughout:

    B   batch (always 1)            T   prompt length, in tokens
    L   text layers                 W   window: the last prompt tokens, always kept
    H   KV heads                    Np  prefix: the T - W prompt tokens before the window
    G   query heads per KV head     S   selected prefix entries per KV head
    D   head dimension              C   candidates that a refresh scores exactly
    N   generated tokens (steps)    R   rank of the detector's sketch
    P   visual tokens               n   live slots of a store: S + W + generated

Step t is the forward pass whose logits choose generated token t. Step 0 is the prefill: it attends to the
whole prompt and takes no decision; a layer-step is one layer of a step t >= 1.
"""
