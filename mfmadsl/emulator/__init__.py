"""Machine code on a machine without a GPU. Knows neither TVM nor the `.mfma` library.

The names of `__init__.pyi` are imported when they are first used, so that reading a kernel's
registers does not load what runs it.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
