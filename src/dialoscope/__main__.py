"""`python -m dialoscope` is the command line."""

from dialoscope.cli import main

main()
