"""mfmadsl: matrix-core instructions, written down once.

The names of `__init__.pyi` are imported when they are first used, so that a tool that only reads
`.mfma` files does not wait for TVM.
"""

import lazy_loader

from mfmadsl.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
