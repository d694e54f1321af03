"""`python -m gpuexplore` is the command `gpuexplore`."""

import sys

from gpuexplore.cli import main

if __name__ == "__main__":
    sys.exit(main())
