"""What this room offers the rest of the package, which finds it by `litesmith.plugins`."""

from litesmith.kernels import litesmith_target
from litesmith.run.litert.own_kernels import OwnKernels

PLUG: OwnKernels = litesmith_target
