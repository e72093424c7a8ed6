"""Which kernel a library launches for a GEMM: its tile, cluster, split of K and grid.

``chooser.choose_gemm`` answers for cuBLAS 13.1 on an H200. The rule is made of parts that can be read:

- ``small``: one row or column, in fp32 few columns: kernels for vectors, by a few thresholds;
- ``nvjet``: fp16 and bf16 with rows of multiples of 16 B: each kernel, cluster and split of K has a price
  made of waves, wgmma's cycles and bytes; the cheapest is taken;
- ``batched``: several products: as the nearest measured one;
- ``odd``: fp16 and bf16 with other rows: kernels for Ampere and Turing, by thresholds;
- ``tiled``: tf32 and fp32: a power law says whether wgmma is used, a tree over the sizes chooses the tile.

How often it is right, in per cent of 532 shapes, each chosen from what other groups of shapes gave; beside it
the nearest shape of those groups (``accuracy``; its docstring says what is no forecast):

============================  ===========  ===========  ===========  ===========
right                         fp16         bf16         tf32         fp32
============================  ===========  ===========  ===========  ===========
wgmma, mma, FFMA or vector    100 (62)     100 (61)     94 (72)      99 (89)
family                        97 (59)      97 (58)      94 (68)      82 (75)
tile                          77 (31)      80 (30)      75 (52)      70 (60)
tile among the best three     94 (44)      96 (43)      87 (66)      87 (73)
stages                        91 (36)      92 (36)      88 (63)      82 (77)
cluster                       87 (42)      89 (41)      100 (98)     100 (98)
parts of K                    89 (60)      89 (59)      72 (56)      60 (42)
TBs                           80 (26)      80 (27)      56 (24)      54 (8)
name of the kernel            71 (20)      73 (19)      58 (35)      64 (52)
============================  ===========  ===========  ===========  ===========

The names of tf32 and fp32 kernels say nothing of clusters. For 60 shapes cuBLASLt's candidates were
timed. The tiles chosen for them, held out as well, take 0.5 % more time than the library's in fp16, 0.3 %
in bf16, 0.2 % less in tf32 and 5.3 % more in fp32: 15 shapes each, of which 2, 2, 3 and 6 get another
tile; 3 of these 6 were not timed.
"""
