"""Operators and delegates of the user's own: what they compute, and by which name.

agree.py       whether loops compute what their function means
call.py        an operator at one place of a model, ready to compute
delegate.py    what a kernel and a delegate are
flexbuffer.py  options of a custom op in the file
native.py      the user's loops as machine code
operator.py    `Operator`: a custom op with numpy as its meaning
registry.py    names, and the user's files that define them
results.py     what the user's functions return, and what goes wrong in them

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
