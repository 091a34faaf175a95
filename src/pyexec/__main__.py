"""`python -m pyexec` is `pyexec`."""

from pyexec.cli.main import main

if __name__ == "__main__":
    main()
