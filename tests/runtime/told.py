"""What all scenarios do on the stand-in.

python -m tests.runtime.told    # prints {name: {"calls", "error", "value"}} as JSON
"""

from __future__ import annotations

import json

from mfmadsl.runtime import autoload
from tests.runtime import mistakes, scenarios
from tests.runtime.scenario import SCENARIOS, ran

FILES = (scenarios, mistakes)  # which fill SCENARIOS when they are imported

if __name__ == "__main__":
    autoload()
    print(json.dumps({function.__name__: ran(function) for function in SCENARIOS}, default=str))
