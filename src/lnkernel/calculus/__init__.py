"""How one pair of inputs flows through a network: one rule for each layer, one dual for each activation."""

from lnkernel.calculus import attention as _attention  # noqa: F401  # registers its rule
from lnkernel.calculus import convolution as _convolution  # noqa: F401  # registers its rules
from lnkernel.calculus import embedding as _embedding  # noqa: F401  # registers its rule
from lnkernel.calculus import homogeneous as _homogeneous  # noqa: F401  # registers its dual
from lnkernel.calculus import image_norm as _image_norm  # noqa: F401  # registers its rule
from lnkernel.calculus import jumps as _jumps  # noqa: F401  # registers its dual
from lnkernel.calculus import local_convolution as _local_convolution  # noqa: F401  # registers its rule
from lnkernel.calculus import places as _places  # noqa: F401  # registers its rules
from lnkernel.calculus import polynomial as _polynomial  # noqa: F401  # registers its dual
from lnkernel.calculus import pooling as _pooling  # noqa: F401  # registers its rules
from lnkernel.calculus import quadrature as _quadrature  # noqa: F401  # registers its dual
from lnkernel.calculus import resize as _resize  # noqa: F401  # registers its rule
from lnkernel.calculus import series as _series  # noqa: F401  # registers its dual
