"""Operators and delegates of the user's own: what they compute, and by which name.

>>> import litesmith, numpy as np
>>> @litesmith.op("HardMish")
... def hard_mish(x):
...     return x / 2 * np.clip(x + 2, 0, 2)
>>> hard_mish(np.float32([-3, 1]))
array([-0.,  1.], dtype=float32)
>>> litesmith.ops.unregister("HardMish")
"""

from litesmith.ops.agree import Agreement as Agreement
from litesmith.ops.agree import check as check
from litesmith.ops.delegate import Delegate as Delegate
from litesmith.ops.delegate import Native as Native
from litesmith.ops.operator import Operator as Operator
from litesmith.ops.registry import delegate as delegate
from litesmith.ops.registry import load as load
from litesmith.ops.registry import op as op
from litesmith.ops.registry import scope as scope
from litesmith.ops.registry import unregister as unregister
