"""Trees that choose the tile of a tf32 or fp32 GEMM; each leaf lists kernels, the most frequent one first.

A kernel is m x n x k-step_stages. A question compares sizes of the problem in elements (``m n`` is a
product), or asks for a transpose; its answer yes is indented, then comes ``else``. The trees were grown by
scikit-learn (``tests/hw/library/fit_trees.py``: splits of least Gini impurity on logarithms). Their size, 12
leaves each and 16 in fp32, and that ties go to the larger tile gave the best held-out figures of a few tries;
in fp32 ties matter: had they gone to the more frequent tile, 12 % fewer rows would be right. Thresholds lie
midway between sizes of the sweep: their third digit means nothing.
"""

TF32_WGMMA = """
m n <= 532000:
  64x64x32_0 128x64x32_0 64x128x32_0 128x128x32_0
else:
  m n <= 1060000:
    k <= 8220:
      64x128x32_0 128x64x32_0
    else:
      128x256x32_0 128x64x32_0
  else:
    k <= 3450:
      m n <= 2840000:
        m n <= 2210000:
          128x128x32_0 64x256x32_0 128x64x32_0
        else:
          64x128x32_0
      else:
        n <= 362:
          256x128x32_0
        else:
          128x128x32_0 128x256x32_0 64x256x32_0
    else:
      m n <= 2720000:
        128x128x32_0 128x256x32_0 256x64x32_0 64x128x32_0
      else:
        m n <= 19400000:
          m <= 1140:
            256x128x32_0 128x128x32_0
          else:
            128x256x32_0 128x128x32_0 256x128x32_0
        else:
          m n <= 49000000:
            128x128x32_0 128x256x32_0
          else:
            128x256x32_0
"""
TF32_MMA = """
k <= 1900:
  m n <= 741000:
    n <= 980:
      64x64x16_6 128x64x32_6 256x64x32_3
    else:
      128x256x32_3 128x64x32_6
  else:
    n <= 1240:
      k <= 1280:
        256x128x32_3
      else:
        256x64x32_3
    else:
      128x64x16_6
else:
  A transposed no:
    m n <= 80300:
      256x64x32_3 64x64x32_5
    else:
      256x64x32_3
  else:
    k <= 3550:
      m n <= 36600:
        64x64x32_6
      else:
        m n <= 56800:
          128x64x32_6
        else:
          128x256x32_3 64x256x32_4 64x128x32_6 64x64x32_4
    else:
      m <= 724:
        128x256x32_3 256x64x32_3
      else:
        128x64x32_6
"""
TF32_MMA_ODD = """
n <= 3510:
  m n <= 1050000:
    m n <= 733000:
      m n <= 56000:
        m n <= 8580:
          64x64x16_6
        else:
          64x128x32_3 64x64x16_6
      else:
        n <= 69.6:
          256x64x32_3
        else:
          m <= 630:
            128x64x32_3
          else:
            256x128x32_3
    else:
      128x256x32_3
  else:
    m <= 9570:
      k <= 1770:
        128x128x32_3
      else:
        A transposed no:
          256x128x32_3
        else:
          128x128x32_3
    else:
      128x256x32_3 256x128x32_3 256x64x16_4
else:
  A transposed no:
    128x256x32_3 64x256x32_4
  else:
    256x128x32_3
"""
FP32 = """
m n k <= 8590000000:
  m n k <= 106000000:
    A transposed no:
      m <= 716:
        min(m, n) <= 114:
          64x64x8_5 128x32x8_5
        else:
          32x32x8_3 64x32x8_3
      else:
        128x32x8_5 64x64x8_5
    else:
      m n k <= 1840000:
        128x32x8_5 64x64x8_5 128x64x8_5 32x128x8_5
      else:
        32x32x8_3 64x64x8_3 32x128x8_3 128x32x8_5
  else:
    n <= 44.9:
      32x128x8_3 32x64x8_3 64x256x8_3 64x128x8_3
    else:
      k <= 1920:
        64x64x8_3 128x64x8_3 128x128x8_3 64x128x8_3
      else:
        m n k <= 949000000:
          128x64x8_3 64x64x8_3 64x32x8_3
        else:
          n <= 181:
            64x256x8_3 64x128x8_3 128x128x8_3 256x128x8_4
          else:
            128x128x8_3 256x128x8_4 256x64x8_3 64x64x8_3
else:
  A transposed no:
    B transposed no:
      m n k <= 21500000000:
        256x128x8_4 128x128x8_3 64x64x8_3 128x64x8_3
      else:
        256x128x8_3
    else:
      128x256x8_4 256x128x8_4
  else:
    n <= 1450:
      m n <= 7260000:
        128x128x8_3 64x256x8_3 128x64x8_3
      else:
        64x256x8_3
    else:
      128x128x8_3 128x64x8_3
"""
# fp32 with B transposed, where no kernel of three stages exists: read off 13 rows
FP32_TURNED = """
m n <= 300000:
  64x64x8_5 128x32x8_5
else:
  m <= 5000:
    128x256x8_4 256x128x8_4
  else:
    256x128x8_4 128x256x8_4
"""
