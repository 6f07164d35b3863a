"""Run the command: ``python -m ocfuse``."""

from ocfuse.cli import main

if __name__ == "__main__":
    main()
